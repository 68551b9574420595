import { getAddress, isAddress, type Address } from 'viem'

/** A text as an address (EIP-55); null if it is none, or if its checksum is wrong. */
export function checksummed(text: unknown): Address | null {
  return typeof text === 'string' && isAddress(text) ? getAddress(text) : null
}
