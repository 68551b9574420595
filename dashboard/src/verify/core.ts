/** The checks of a round's record. They are pure: no I/O, no clock, and random numbers only from an argument. */
import { concat, encodeAbiParameters, keccak256, numberToHex, size, slice, toHex, type Address, type Hex } from 'viem'
import * as say from '../strings'
import { isFlipped, publishedCommitment, seedCommitment, type Progress } from './decoys'
import {
  BlobMalformed,
  commit,
  commitsTo,
  EIP2537_LENGTH,
  parseEip2537,
  parsePoint,
  PointMalformed,
  versionedHash,
  weightedSum,
  type Point,
} from './kzg'
import { STATISTICS_ROUND, type Cohort, type RoundRecord, type Shown } from './record'

const words = say.verify

const POINT_TAG = keccak256(toHex('CONSILIUM-V1-POINT'))

/** `skipped`: this cannot be checked here. `waits`: this is not there yet. Neither is a failure or a proof. */
export type State = 'fails' | 'waits' | 'skipped' | 'holds'

export interface Step {
  key: string
  title: string
  state: State | 'running'
  lines: string[]
}

/** `unchecked`: not even the record could be read. */
export type Verdict = 'running' | 'holds' | 'partly' | 'unchecked' | 'fails'

/** A blob from the mirror. */
export type Fetched = { blob: Uint8Array } | { missing: true } | { unreachable: string }

/** A sum's step, and the commitment of each of its blobs; null for one that does not hold. */
export interface Sum {
  step: Step
  points: (Point | null)[]
}

export function verdictOf(steps: readonly Step[]): Verdict {
  const states = new Set(steps.map((step) => step.state))
  if (states.has('fails')) return 'fails'
  if (states.has('running') || states.size === 0) return 'running'
  if (states.has('waits') || states.has('skipped')) return steps.some(isOfRecord) ? 'partly' : 'unchecked'
  return 'holds'
}

function isOfRecord({ key, state }: Step): boolean {
  return key === 'record' && state !== 'skipped'
}

class Finding {
  private readonly found = new Map<State, string[]>()

  add(state: State, line: string) {
    this.found.set(state, [...(this.found.get(state) ?? []), line])
  }

  /** The lines by state, failures first. Without a finding the step holds. */
  step(key: string, title: string, holds: string[]): Step {
    const order: State[] = ['fails', 'waits', 'skipped', 'holds']
    const state = order.find((one) => this.found.has(one)) ?? 'holds'
    const lines = order.flatMap((one) => this.found.get(one) ?? [])
    return { key, title, state, lines: state === 'holds' ? [...holds, ...lines] : lines }
  }
}

export function recordStep(record: RoundRecord): Step {
  const finding = new Finding()
  const survivors = record.cohorts.flatMap((cohort) => cohort.survivors)
  const committed = new Set(record.committed)
  for (const index of survivors) {
    const name = record.hospitals[index]?.node ?? String(index)
    const count = record.pointHashes.get(index)?.length ?? 0
    if (!committed.has(index)) finding.add('fails', words.notCommitted(name))
    if (count !== record.blobs) finding.add('fails', words.noPoints(name, count, record.blobs))
  }
  if (record.cohorts.length === 0 && record.outcome === 'pending') finding.add('waits', words.notBegun)
  else if (!record.isFixed && record.outcome === 'pending') finding.add('waits', words.notFixed)
  return finding.step('record', words.record, [
    words.recordHolds(record.events, record.block, record.committed.length, survivors.length),
    ...record.cohorts.filter((cohort) => cohort.isDropped).map((cohort) => words.dropped(cohort.index)),
  ])
}

/** In a decoy round: compares the sign-flipped sums with the seed. */
export function seedStep(record: RoundRecord): Step {
  const finding = new Finding()
  const { decoys, shown, task, round } = record
  const seed = shown.find((one) => seedCommitment(one.seed) === decoys?.seedCommitment)?.seed
  const disclosed = record.cohorts.filter((cohort) => cohort.isDisclosed)
  if (!decoys) finding.add('waits', words.decoysUnset)
  else if (disclosed.length === 0) finding.add('waits', words.decoysWait)
  else if (record.openingBlocks !== null) finding.add('skipped', words.manyBlocks(record.openingBlocks))
  else if (seed === undefined) finding.add('skipped', words.noSeed)
  else
    for (const cohort of disclosed)
      if (isFlipped(seed, task, round, cohort.index) !== cohort.isFlipped)
        finding.add('fails', words.flippedWrong(cohort.index, cohort.isFlipped))
  return finding.step('decoys', words.decoys, [words.decoysHolds])
}

/** The progress of the rounds before, or why it is not known. */
export type Learnt = { progress: Progress } | { state: 'fails' | 'skipped'; why: string }

/** True if a sum was sign-flipped, and a transaction shows the negated delta that the aggregator committed to. */
export function hasNegatedDelta(record: RoundRecord): boolean {
  return record.cohorts.some((cohort) => cohort.isDisclosed && cohort.isFlipped) && committedTo(record).length > 0
}

/** In a decoy round: checks the negated delta. learnt: needed if `hasNegatedDelta`. Throws PointMalformed. */
export function negatedDeltaStep(record: RoundRecord, ceremony: readonly Point[], learnt: Learnt | null): Step {
  const finding = new Finding()
  const negatedDelta = committedTo(record)[0]?.negatedDelta
  const disclosed = record.cohorts.filter((cohort) => cohort.isDisclosed)
  const holds: string[] = []
  if (disclosed.length === 0) finding.add('waits', words.decoysWait)
  else if (!disclosed.some((cohort) => cohort.isFlipped)) holds.push(words.negatedDeltaUnused)
  else if (negatedDelta === undefined || learnt === null) finding.add('skipped', words.noSeed)
  else if ('why' in learnt) finding.add(learnt.state, learnt.why)
  else {
    const own = learnt.progress.negatedDelta(ceremony)
    own.forEach((point, blob) => {
      if (!parseEip2537(negatedDeltaOf(negatedDelta, blob)).equals(point))
        finding.add('fails', words.negatedDeltaWrong(blob))
    })
    if (learnt.progress.isBeyondModel) finding.add('skipped', words.negatedDeltaBeyond)
    holds.push(
      record.round === STATISTICS_ROUND + 1 ? words.negatedDeltaFirst : words.negatedDeltaHolds(record.round - 1),
    )
  }
  return finding.step('negatedDelta', words.negatedDelta, holds)
}

/** The disclosures that show the negated delta that was committed to before publication. */
function committedTo({ shown, decoys, blobs }: RoundRecord): Shown[] {
  return shown.filter(
    ({ negatedDelta }) =>
      size(negatedDelta) === blobs * EIP2537_LENGTH && keccak256(negatedDelta) === decoys?.negatedDeltaDigest,
  )
}

function negatedDeltaOf(negatedDelta: Hex, blob: number): Hex {
  return slice(negatedDelta, blob * EIP2537_LENGTH, (blob + 1) * EIP2537_LENGTH)
}

/** The hash by which a hospital commits to its commitment to a blob, before it shows it. point: compressed. */
export function pointHash(
  { chainId, contract, task, round }: Pick<RoundRecord, 'chainId' | 'contract' | 'task' | 'round'>,
  hospital: Address,
  blob: number,
  point: Hex,
): Hex {
  const types = ['bytes32', 'uint256', 'address', 'uint256', 'uint256'].map((type) => ({ type }))
  const context = keccak256(
    encodeAbiParameters(types, [POINT_TAG, BigInt(chainId), contract, BigInt(task), BigInt(round)]),
  )
  return keccak256(concat([context, hospital, numberToHex(blob, { size: 32 }), point]))
}

/**
 * Compares the commitments of a cohort's survivors, blob by blob, with the hashes to which these committed, and
 * Σ weight · commitment with the hash that the contract holds.
 */
export function sumOf(record: RoundRecord, cohort: Cohort, ceremony: readonly Point[]): Sum {
  const finding = new Finding()
  const points: (Point | null)[] = []
  const title = words.sum(cohort.index)
  const key = `sum-${cohort.index}`
  const weights = cohort.survivors.map((index) =>
    record.round === STATISTICS_ROUND ? 1n : BigInt(record.hospitals[index]?.weight ?? 0),
  )
  try {
    for (let blob = 0; blob < record.blobs; blob++)
      points.push(blobOfSum({ record, cohort, blob, weights, ceremony }, finding))
  } catch (error) {
    if (!(error instanceof PointMalformed)) throw error
    finding.add('fails', words.malformed(error.message))
  }
  const weight = sumOfWeights(weights)
  const holds = [words.sumHolds(cohort.survivors.length, weight, record.blobs)]
  if (cohort.isFlipped) holds.push(words.sumFlipped)
  return { step: finding.step(key, title, holds), points }
}

interface BlobOfSum {
  record: RoundRecord
  cohort: Cohort
  blob: number
  /** The survivors' weights. */
  weights: readonly bigint[]
  ceremony: readonly Point[]
}

function blobOfSum(of: BlobOfSum, finding: Finding): Point | null {
  const { record, cohort, blob, weights } = of
  const held = cohort.expected[blob] ?? null
  const event = cohort.published[blob] ?? null
  if (held === null) {
    finding.add('waits', words.sumWaits(blob))
    return null
  }
  if (event !== null && event !== held) finding.add('fails', words.eventDiffers(blob, held, event))
  if (record.hasDecoys && !cohort.isDisclosed) {
    finding.add('waits', words.sumUndisclosed(blob))
    return null
  }
  const committed = committedPoints(of, finding)
  if (committed === null) return null
  const total = weightedSum(committed, weights)
  const candidates = record.hasDecoys ? shownSums(of, total) : [total]
  const found = candidates.find((point) => versionedHash(point) === held)
  if (found) return found
  if (candidates.length === 0) finding.add('skipped', words.sumUnshown(blob))
  else finding.add('fails', words.sumDiffers(blob, held, candidates.map(versionedHash).join(' / ')))
  return null
}

/** The survivors' commitments that events show; null if one is missing, or not what its hospital committed to. */
function committedPoints({ record, cohort, blob }: BlobOfSum, finding: Finding): Point[] | null {
  const points: Point[] = []
  for (const index of cohort.survivors) {
    const { node } = record.hospitals[index] ?? {}
    const shown = record.points.get(index)?.[blob] ?? null
    if (node === undefined || shown === null) finding.add('fails', words.pointUnshown(blob, node ?? String(index)))
    else if (pointHash(record, node, blob, shown) !== record.pointHashes.get(index)?.[blob])
      finding.add('fails', words.pointDiffers(blob, node))
    else points.push(parsePoint(shown))
  }
  return points.length === cohort.survivors.length ? points : null
}

function sumOfWeights(weights: readonly bigint[]): bigint {
  return weights.reduce((sum, one) => sum + one, 0n)
}

/**
 * In a decoy round: the published commitment for each pair of blinders that a transaction shows. They need no trust. If
 * any two numbers match, all other scalars are those of the sum, or KZG's binding is broken.
 */
function shownSums({ record, cohort, blob, weights, ceremony }: BlobOfSum, total: Point): Point[] {
  const weight = sumOfWeights(weights)
  return committedTo(record)
    .filter((one) => one.cohort === cohort.index && one.blob === blob)
    .map((one) => {
      const negatedDelta = parseEip2537(negatedDeltaOf(one.negatedDelta, blob))
      return publishedCommitment(total, weight, one, negatedDelta, cohort.isFlipped, record.layout, ceremony)
    })
}

/**
 * Commits to a cohort's fetched blobs again, and compares the hashes with the contract's.
 *
 * points: from `sumOf`. If all are known, one commitment checks all blobs. random: a uniform number below 2^128.
 * near: as in `commit`.
 */
export function blobStep(
  cohort: Cohort,
  fetched: readonly (Fetched | null)[],
  points: readonly (Point | null)[],
  ceremony: readonly Point[],
  random: () => bigint,
  near = 0n,
): Step {
  const finding = new Finding()
  const key = `blob-${cohort.index}`
  const holds = [words.blobHolds(fetched.length)]
  if (fetched.length > 1 && allCommit(fetched, points, ceremony, random))
    return finding.step(key, words.blob(cohort.index), holds)
  fetched.forEach((one, blob) => {
    const held = cohort.expected[blob] ?? null
    if (held === null || one === null) finding.add('waits', words.blobWaits(blob))
    else if ('missing' in one) finding.add('fails', words.blobMissing(blob, held))
    else if ('unreachable' in one) finding.add('skipped', words.blobUnreachable(blob, one.unreachable))
    else {
      const fault = faultOf(one.blob, blob, held, ceremony, near)
      if (fault !== null) finding.add('fails', fault)
    }
  })
  return finding.step(key, words.blob(cohort.index), holds)
}

function allCommit(
  fetched: readonly (Fetched | null)[],
  points: readonly (Point | null)[],
  ceremony: readonly Point[],
  random: () => bigint,
): boolean {
  const blobs = fetched.map((one) => (one && 'blob' in one ? one.blob : null)).filter((blob) => blob !== null)
  const known = points.filter((point) => point !== null)
  if (blobs.length !== fetched.length || known.length !== fetched.length) return false
  try {
    return commitsTo(blobs, known, blobs.map(random), ceremony)
  } catch (error) {
    if (error instanceof BlobMalformed) return false // the check of each blob finds which one
    throw error
  }
}

/** The words for a blob that does not have this hash; null if it has. */
export function faultOf(
  raw: Uint8Array,
  blob: number,
  held: Hex,
  ceremony: readonly Point[],
  near: bigint,
): string | null {
  try {
    const hash = versionedHash(commit(raw, ceremony, near))
    return hash === held ? null : words.blobDiffers(blob, held, hash)
  } catch (error) {
    if (!(error instanceof BlobMalformed)) throw error
    return error.at === null ? words.blobLength(blob, error.bytes) : words.blobScalar(blob, error.at)
  }
}
