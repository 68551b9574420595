/** A round's record from the chain, with all that the checks need. It goes to the worker, so it is plain data. */
import type { Address, Hex } from 'viem'
import type { Blinders, Layout } from './decoys'

export interface Hospital {
  node: Address
  weight: number
}

export interface Cohort {
  index: number
  /** Indices of hospitals, ascending. */
  members: number[]
  survivors: number[]
  /** The contract's hash of each blob; null before it has one. */
  expected: (Hex | null)[]
  /** The hash of each blob in the event of its publication; null before that. */
  published: (Hex | null)[]
  isDropped: boolean
  isDisclosed: boolean
  isFlipped: boolean
}

/** The disclosure of one blob in a decoy round, from a transaction. The checks find out if it is true. */
export interface Shown extends Blinders {
  cohort: number
  blob: number
  seed: Hex
  /** The commitments to the round's negated delta, encoded as in EIP-2537. */
  negatedDelta: Hex
}

/** A settled training round before this one, with its accepted cohorts' sums. */
export interface Earlier {
  round: number
  cohorts: { cohort: number; weight: number; isFlipped: boolean; hashes: Hex[] }[]
}

export interface RoundRecord {
  chainId: number
  contract: Address
  task: number
  round: number
  outcome: 'pending' | 'settled' | 'void'
  /** The number of a sum's blobs. */
  blobs: number
  layout: Layout
  hospitals: Hospital[]
  /** Indices of hospitals whose commitments the contract has. */
  committed: number[]
  /** True once the survivors are fixed. */
  isFixed: boolean
  cohorts: Cohort[]
  /** The hashes of each hospital's commitments, by its index, then by blob. */
  pointHashes: Map<number, readonly Hex[]>
  /** The compressed commitments that events of sums show, by the hospital's index, then by blob. */
  points: Map<number, readonly (Hex | null)[]>
  hasDecoys: boolean
  /** The aggregator's commitments before publication. */
  decoys: { seedCommitment: Hex; negatedDeltaDigest: Hex } | null
  shown: Shown[]
  /** The number of blocks to read for `shown`, if it was too high; else null. */
  openingBlocks: number | null
  /** All training rounds before, if this one has sign-flipped sums; null if they are too many. */
  before: Earlier[] | null
  /** The number of events read. */
  events: number
  block: bigint
}

/** The statistics round has one cohort of all hospitals, with weight 1 each, and is never sign-flipped. */
export const STATISTICS_ROUND = 0
