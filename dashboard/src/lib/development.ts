/** A chain for trying things out, on the visitor's own machine. Only there are tokens given away. */

export const DEVELOPMENT_CHAIN = 31_337 // of anvil and other local chains
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

export function isDevelopment(place: { chainId: number; chainUrl: string | null }): place is {
  chainId: typeof DEVELOPMENT_CHAIN
  chainUrl: string
} {
  if (place.chainId !== DEVELOPMENT_CHAIN || place.chainUrl === null || !URL.canParse(place.chainUrl)) return false
  return LOOPBACK.has(new URL(place.chainUrl).hostname)
}
