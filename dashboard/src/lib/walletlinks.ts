/** Links that open a page in the browser of a phone's wallet (universal links: the wallet's app takes them). */

export interface WalletLink {
  wallet: string
  href: string
}

/** Of `page`, an address of this dashboard. MetaMask's has no scheme, for it is always HTTPS, and no #: the server redirects
 * the path to it.
 */
export function walletLinks(page: string): WalletLink[] {
  const { protocol, host, pathname, hash } = new URL(page)
  const path = hash.startsWith('#/') ? pathname.replace(/[^/]*$/, '') + hash.slice(2) : pathname
  const whole = encodeURIComponent(page)
  const links = [
    { wallet: 'Coinbase Wallet', href: `https://go.cb-w.com/dapp?cb_url=${whole}` },
    { wallet: 'Trust Wallet', href: `https://link.trustwallet.com/open_url?coin_id=60&url=${whole}` },
  ]
  if (protocol !== 'https:') return links
  return [{ wallet: 'MetaMask', href: `https://link.metamask.io/dapp/${host}${path}` }, ...links]
}
