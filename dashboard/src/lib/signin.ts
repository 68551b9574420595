/** Sign-In with Ethereum (EIP-4361). */

export interface SignIn {
  domain: string
  uri: string
  chainId: number
  nonce: string
  /** With the capitals of EIP-55. */
  account: string
  /** Spaces and characters of a URI, without line breaks. */
  statement: string
  /** RFC 3339. */
  issuedAt: string
}

/** The message that the wallet signs. viem's `createSiweMessage` refuses hosts without a dot, as in an intranet. */
export function signInMessage(of: SignIn): string {
  return [
    `${of.domain} wants you to sign in with your Ethereum account:`,
    of.account,
    '',
    of.statement,
    '',
    `URI: ${of.uri}`,
    'Version: 1',
    `Chain ID: ${of.chainId}`,
    `Nonce: ${of.nonce}`,
    `Issued At: ${of.issuedAt}`,
  ].join('\n')
}
