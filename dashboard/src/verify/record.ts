/** A round as the chain has it: all that the checks need, read once. Crosses to the worker, so it is plain data. */
import type { Address, Hex } from 'viem'
import type { Blinders, Layout } from './canaries'

export interface Hospital {
  node: Address
  weight: number
}

export interface Cohort {
  index: number
  /** Indices of hospitals, ascending. */
  members: number[]
  survivors: number[]
  /** Blob by blob, what the contract holds; null until it does. */
  expected: (Hex | null)[]
  /** Blob by blob, what the event of the publication says; null until it is published. */
  published: (Hex | null)[]
  isDropped: boolean
  isOpened: boolean
  isFlipped: boolean
}

/** What a transaction that opens a canary round says of one blob. Whether it is true, the checks tell. */
export interface Shown extends Blinders {
  cohort: number
  blob: number
  seed: Hex
  /** The commitments to what canaries take back, all of the round, EIP-2537. */
  negatedDelta: Hex
}

/** A settled training round before this one: of each accepted cohort what follows from its sum. */
export interface Earlier {
  round: number
  cohorts: { cohort: number; weight: number; isFlipped: boolean; hashes: Hex[] }[]
}

export interface RoundRecord {
  task: number
  round: number
  outcome: 'pending' | 'settled' | 'void'
  /** Blobs of a sum. */
  blobs: number
  layout: Layout
  hospitals: Hospital[]
  /** Indices of hospitals whose commitments the contract has. */
  committed: number[]
  /** Whether it is said whose updates are in the sums. */
  isFixed: boolean
  cohorts: Cohort[]
  /** By index of hospital, its commitments, one after the other, compressed. */
  points: Map<number, Hex>
  hasCanaries: boolean
  /** What the aggregator fixed before it published. */
  canaries: { seedCommitment: Hex; negatedDeltaDigest: Hex } | null
  shown: Shown[]
  /** The number of blocks that would have to be read for `shown`, where it was too high; else null. */
  openingBlocks: number | null
  /** All training rounds before, where this one's turned sums take back what they taught; null where they are too many. */
  before: Earlier[] | null
  /** Read from the chain. */
  events: number
  block: bigint
}

/** The round of statistics: one cohort of everybody, weight 1 each, never turned. */
export const STATISTICS_ROUND = 0
