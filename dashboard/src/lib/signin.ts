/** Sign-In with Ethereum (EIP-4361). */

export interface SignIn {
  domain: string
  uri: string
  chainId: number
  nonce: string
  /** With EIP-55's capitals. */
  account: string
  /** No line breaks, and nothing but what a URI may hold, and spaces. */
  statement: string
  /** RFC 3339. */
  issuedAt: string
}

/** What the wallet signs. Not viem's `createSiweMessage`: it takes no host without a dot, as an intranet's often are. */
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
