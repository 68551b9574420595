/** Canary rounds: what is published of a sum, as `Canaries.sol` and `consilium_zk/canaries.py` have it. */
import { concat, keccak256, numberToHex, toHex, type Hex } from 'viem'
import { GENERATOR, SCALARS, weightedSum, type Point } from './kzg'

const TAG = keccak256(toHex('CONSILIUM-V1-CANARY'))
const USABLE_BITS = 252

/** How a task's lanes are laid. */
export interface Layout {
  /** Of a quantised value. */
  updateBits: number
  laneBits: number
}

/** The sum of the survivors' weighted blinders: what a published blob's last two scalars would have been. */
export interface Blinders {
  first: bigint
  second: bigint
}

export function seedCommitment(seed: Hex): Hex {
  return keccak256(concat([TAG, seed]))
}

export function isTurned(seed: Hex, task: number, round: number, cohort: number): boolean {
  const raw = concat([TAG, seed, ...[task, round, cohort].map((number) => numberToHex(number, { size: 32 }))])
  return (BigInt(keccak256(raw)) & 1n) === 1n
}

/**
 * The commitment to what is published of a sum of total weight w. With E the commitment to ones in all lanes and D that
 * to the sum without its blinders, it is D + w·h·E as it is, and 4wh·E - w·retreat - D turned.
 */
export function publishedCommitment(
  total: Point,
  weight: bigint,
  blinders: Blinders,
  retreat: Point,
  turned: boolean,
  layout: Layout,
  ceremony: readonly Point[],
): Point {
  const sign = turned ? -1n : 1n
  const level = (turned ? 4n : 1n) * weight * offset(layout) * ones(layout)
  return weightedSum(
    [total, GENERATOR, ...blinderPoints(ceremony), retreat],
    [sign, level, -level - sign * blinders.first, -level - sign * blinders.second, turned ? -weight : 0n],
  )
}

/** What the first training round's canaries take back of each blob: nothing, which in lanes is the offset. */
export function firstRetreat(layout: Layout, ceremony: readonly Point[]): Point {
  const level = offset(layout) * ones(layout)
  return weightedSum([GENERATOR, ...blinderPoints(ceremony)], [level, -level, -level])
}

/** One in all scalars is the generator's; lanes are in all but the last two. */
function blinderPoints(ceremony: readonly Point[]): Point[] {
  return ceremony.slice(SCALARS - 2)
}

function offset({ updateBits }: Layout): bigint {
  return (1n << BigInt(updateBits - 1)) - 1n
}

/** A scalar with one in each of its lanes. */
function ones({ laneBits }: Layout): bigint {
  let found = 0n
  for (let lane = Math.floor(USABLE_BITS / laneBits); lane > 0; lane--)
    found = (found << BigInt(laneBits)) | 1n
  return found
}
