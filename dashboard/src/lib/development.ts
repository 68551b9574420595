/** A chain for trying things out, on the visitor's own machine. Only there are tokens given away. */

export const DEVELOPMENT_CHAIN = 31_337 // of anvil and other local chains
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

export function isDevelopment(network: { chainId: number; chainUrl: string | null }): network is {
  chainId: typeof DEVELOPMENT_CHAIN
  chainUrl: string
} {
  const { chainId, chainUrl } = network
  if (chainId !== DEVELOPMENT_CHAIN || chainUrl === null || !URL.canParse(chainUrl)) return false
  return LOOPBACK.has(new URL(chainUrl).hostname)
}
