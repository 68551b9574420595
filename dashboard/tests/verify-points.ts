/** Commitments as a round's record has them: the points, and the hashes that hospitals gave before they showed them. */
import type { Hex } from 'viem'
import { pointHash } from '../src/verify/core'
import type { RoundRecord } from '../src/verify/record'

/** points: by the hospital's index, then by blob. */
export function committedTo(
  record: Omit<RoundRecord, 'points' | 'pointHashes'>,
  points: Map<number, readonly Hex[]>,
): RoundRecord {
  const bare: RoundRecord = { ...record, points, pointHashes: new Map() }
  const hashesOf = (index: number, row: readonly Hex[]) =>
    row.map((point, blob) => pointHash(bare, record.hospitals[index]?.node ?? '0x', blob, point))
  return { ...bare, pointHashes: new Map([...points].map(([index, row]) => [index, hashesOf(index, row)])) }
}
