/** The published sums of decoy rounds, as in `Decoys.sol` and `consilium_zk/decoys.py`. */
import { concat, keccak256, numberToHex, toHex, type Hex } from 'viem'
import { allOf, commitScalars, GENERATOR, modulo, USABLE, weightedSum, type Point } from './kzg'

const TAG = keccak256(toHex('CONSILIUM-V1-CANARY'))
const USABLE_BITS = 252
const STRENGTH = 24n // a decoy's, in sixteenths

/** The widths of a task's lanes. */
export interface Layout {
  /** The width of a quantised value. */
  updateBits: number
  laneBits: number
}

/** The sum of the survivors' weighted blinders, which an unmodified sum has as its last two scalars. */
export interface Blinders {
  first: bigint
  second: bigint
}

export function seedCommitment(seed: Hex): Hex {
  return keccak256(concat([TAG, seed]))
}

export function isFlipped(seed: Hex, task: number, round: number, cohort: number): boolean {
  const raw = concat([TAG, seed, ...[task, round, cohort].map((number) => numberToHex(number, { size: 32 }))])
  return (BigInt(keccak256(raw)) & 1n) === 1n
}

/**
 * The commitment to the published form of a sum of total weight w. E is the commitment to ones in all lanes, D that to
 * the sum without its blinders. It is D + w·h·E without a flip, and 4wh·E - w·negatedDelta - D sign-flipped.
 */
export function publishedCommitment(
  total: Point,
  weight: bigint,
  blinders: Blinders,
  negatedDelta: Point,
  flipped: boolean,
  layout: Layout,
  ceremony: readonly Point[],
): Point {
  const sign = flipped ? -1n : 1n
  const level = (flipped ? 4n : 1n) * weight * offset(layout) * ones(layout)
  return weightedSum(
    [total, GENERATOR, ...blinderPoints(ceremony), negatedDelta],
    [sign, level, -level - sign * blinders.first, -level - sign * blinders.second, flipped ? -weight : 0n],
  )
}

/** The first training round's negated delta of each blob: zero, which in lanes is the offset. */
export function firstNegatedDelta(layout: Layout, ceremony: readonly Point[]): Point {
  return allOf(offset(layout) * ones(layout), ceremony)
}

/** A settled training round's sum: its total weight, and if it was published sign-flipped. */
export interface PublishedSum {
  weight: bigint
  isFlipped: boolean
  /** The scalars of all its blobs, without the blinders. */
  scalars: readonly bigint[]
}

/**
 * The progress of training by lane, in quantiser steps, from settled sums. It is whole numbers throughout, as in
 * `consilium_zk/decoys.py`.
 *
 * coordinates: lanes beyond an update's coordinates do not count. `isBeyondModel` says if a hospital used them.
 */
export class Progress {
  isBeyondModel = false
  private readonly steps: bigint[]
  private readonly layout: Layout
  private readonly coordinates: number

  constructor(layout: Layout, blobs: number, coordinates: number) {
    this.layout = layout
    this.coordinates = coordinates
    this.steps = new Array<bigint>(blobs * USABLE * lanesPerScalar(layout)).fill(0n)
  }

  /** Adds one round's accepted sums. One with a lane out of range is not a sum, and is left out. */
  add(sums: readonly PublishedSum[]) {
    const valid = sums
      .map((sum) => ({ weight: sum.weight, lanes: this.read(sum) }))
      .filter((sum): sum is { weight: bigint; lanes: bigint[] } => sum.lanes !== null)
    const weight = valid.reduce((total, one) => total + one.weight, 0n)
    if (weight === 0n) return
    const middle = weight * offset(this.layout)
    this.steps.forEach((_, at) => {
      const lane = valid.reduce((total, one) => total + (one.lanes[at] ?? 0n), 0n)
      const step = floorDivided(2n * (lane - middle) + weight, 2n * weight)
      if (at < this.coordinates) this.steps[at] = (this.steps[at] ?? 0n) + step
      else if (step !== 0n) this.isBeyondModel = true
    })
  }

  /** The commitments to the next round's negated delta, blob by blob. */
  negatedDelta(ceremony: readonly Point[]): Point[] {
    const perScalar = lanesPerScalar(this.layout)
    const perBlob = perScalar * USABLE
    const first = firstNegatedDelta(this.layout, ceremony)
    return Array.from({ length: this.steps.length / perBlob }, (_, blob) => {
      const scalars = Array.from({ length: USABLE }, (_, scalar) => {
        let found = 0n
        for (let lane = perScalar - 1; lane >= 0; lane--)
          found = (found << BigInt(this.layout.laneBits)) + this.back(blob * perBlob + scalar * perScalar + lane)
        return modulo(found)
      })
      return first.add(commitScalars(scalars, ceremony))
    })
  }

  /** The steps that a decoy takes back in a lane. */
  private back(at: number): bigint {
    const most = offset(this.layout)
    const back = ((this.steps[at] ?? 0n) * STRENGTH) >> 4n
    return back > most ? most : back < -most ? -most : back
  }

  /** The sum's lanes; null if one is out of the range of quantised updates. */
  private read({ weight, isFlipped, scalars }: PublishedSum): bigint[] | null {
    const middle = weight * offset(this.layout)
    const bits = BigInt(this.layout.laneBits)
    const mask = (1n << bits) - 1n
    const perScalar = lanesPerScalar(this.layout)
    const lanes = new Array<bigint>(this.steps.length)
    for (let scalar = 0, at = 0; at < lanes.length; scalar++) {
      let rest = scalars[scalar] ?? 0n
      for (let digit = 0; digit < perScalar; digit++, at++, rest >>= bits) {
        const published = rest & mask
        const back = weight * (offset(this.layout) + this.back(at))
        const lane = isFlipped ? 4n * middle - back - published : published - middle
        if (published > 4n * middle || lane < 0n || lane > 2n * middle) return null
        lanes[at] = lane
      }
      if (rest !== 0n) return null
    }
    return lanes
  }
}

/** The scalar of a published sum whose lanes the model leaves empty, sign-flipped or not. */
export function emptyScalar(weight: bigint, layout: Layout): bigint {
  return 2n * weight * offset(layout) * ones(layout)
}

function lanesPerScalar({ laneBits }: Layout): number {
  return Math.floor(USABLE_BITS / laneBits)
}

function floorDivided(value: bigint, by: bigint): bigint {
  const quotient = value / by
  return value % by < 0n ? quotient - 1n : quotient
}

/** The points of the last two scalars, which hold blinders and no lanes. */
function blinderPoints(ceremony: readonly Point[]): Point[] {
  return ceremony.slice(USABLE)
}

function offset({ updateBits }: Layout): bigint {
  return (1n << BigInt(updateBits - 1)) - 1n
}

/** A scalar with one in each of its lanes. */
function ones(layout: Layout): bigint {
  let found = 0n
  for (let lane = lanesPerScalar(layout); lane > 0; lane--) found = (found << BigInt(layout.laneBits)) | 1n
  return found
}
