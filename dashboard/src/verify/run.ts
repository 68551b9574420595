/** Runs all checks of a record, one after the other. */
import type { Hex } from 'viem'
import { messageOf } from '../lib/errors'
import * as say from '../strings'
import { emptyScalar, Progress, type PublishedSum } from './decoys'
import {
  blobStep,
  faultOf,
  recordStep,
  negatedDeltaStep,
  seedStep,
  sumOf,
  hasNegatedDelta,
  type Fetched,
  type Learnt,
  type Step,
} from './core'
import { CeremonyWrong, PointMalformed, scalarsOf, USABLE, type Point } from './kzg'
import { STATISTICS_ROUND, type Cohort, type Earlier, type RoundRecord } from './record'

const words = say.verify

export interface Source {
  /** The ceremony's points. Throws CeremonyWrong, or an error of the fetch. */
  ceremony: () => Promise<Point[]>
  blob: (hash: Hex) => Promise<Fetched>
  /** The number of an update's coordinates, as the server says; null if unknown. No check relies on it. */
  coordinates: number | null
  /** An unpredictable number, uniform below 2^128. */
  random: () => bigint
}

/** The steps. A running one comes again under the same key. */
export async function* verify(record: RoundRecord, source: Source): AsyncGenerator<Step> {
  const whole = recordStep(record)
  yield whole
  if (whole.state !== 'holds') return
  const cohorts = record.cohorts.filter((cohort) => !cohort.isDropped && cohort.survivors.length > 0)
  if (record.outcome === 'void' || cohorts.length === 0) {
    const why = record.outcome === 'void' ? words.void : words.noCohorts
    yield { key: 'sums', title: words.sums, state: 'skipped', lines: [why] }
    return
  }
  yield running('ceremony', words.ceremony)
  const loaded = await ceremonyOf(source)
  yield loaded.step
  if (!loaded.points) return
  if (record.hasDecoys) yield* decoys(record, loaded.points, source)
  for (const cohort of cohorts) yield* cohortSteps(record, cohort, loaded.points, source)
}

async function ceremonyOf(source: Source): Promise<{ step: Step; points?: Point[] }> {
  const [key, title] = ['ceremony', words.ceremony]
  try {
    const points = await source.ceremony()
    return { step: { key, title, state: 'holds', lines: [words.ceremonyHolds] }, points }
  } catch (error) {
    const isWrong = error instanceof CeremonyWrong
    const line = isWrong ? words.ceremonyFails(error.message) : words.ceremonyUnread(messageOf(error))
    return { step: { key, title, state: isWrong ? 'fails' : 'skipped', lines: [line] } }
  }
}

async function* decoys(record: RoundRecord, ceremony: readonly Point[], source: Source): AsyncGenerator<Step> {
  yield seedStep(record)
  try {
    const learnt = hasNegatedDelta(record) ? yield* learn(record, ceremony, source) : null
    yield negatedDeltaStep(record, ceremony, learnt)
  } catch (error) {
    if (!(error instanceof PointMalformed)) throw error
    yield {
      key: 'negatedDelta',
      title: words.negatedDelta,
      state: 'fails',
      lines: [words.malformed(error.message)],
    }
  }
}

/** The progress of all training rounds before, from their sums, each checked against the contract's hash. */
async function* learn(record: RoundRecord, ceremony: readonly Point[], source: Source): AsyncGenerator<Step, Learnt> {
  if (record.before === null) return { state: 'skipped', why: words.negatedDeltaLater }
  const progress = new Progress(record.layout, record.blobs, source.coordinates ?? Infinity)
  for (const earlier of record.before) {
    const line = words.negatedDeltaReading(earlier.round, record.round - 1)
    yield { ...running('negatedDelta', words.negatedDelta), lines: [line] }
    const sums: PublishedSum[] = []
    for (const cohort of earlier.cohorts) {
      const near = emptyScalar(BigInt(cohort.weight), record.layout)
      const read = await scalarsIn(earlier, cohort, near, ceremony, source)
      if ('why' in read) return read
      sums.push({ weight: BigInt(cohort.weight), isFlipped: cohort.isFlipped, scalars: read.scalars })
    }
    progress.add(sums)
  }
  return { progress }
}

async function scalarsIn(
  { round }: Earlier,
  { cohort, hashes }: Earlier['cohorts'][number],
  near: bigint,
  ceremony: readonly Point[],
  source: Source,
): Promise<{ scalars: bigint[] } | { state: 'fails' | 'skipped'; why: string }> {
  const scalars: bigint[] = []
  for (const [blob, hash] of hashes.entries()) {
    const found = await source.blob(hash)
    if (!('blob' in found)) {
      const why = 'missing' in found ? words.blobMissing(blob, hash) : words.blobUnreachable(blob, found.unreachable)
      return { state: 'skipped', why: words.inRound(round, cohort, why) }
    }
    const fault = faultOf(found.blob, blob, hash, ceremony, near)
    if (fault !== null) return { state: 'fails', why: words.inRound(round, cohort, fault) }
    scalars.push(...scalarsOf(found.blob).slice(0, USABLE))
  }
  return { scalars }
}

async function* cohortSteps(
  record: RoundRecord,
  cohort: Cohort,
  ceremony: readonly Point[],
  source: Source,
): AsyncGenerator<Step> {
  yield running(`sum-${cohort.index}`, words.sum(cohort.index))
  const { step, points } = sumOf(record, cohort, ceremony)
  yield step
  yield running(`blob-${cohort.index}`, words.blob(cohort.index))
  const fetched = await Promise.all(
    cohort.published.map(async (hash, blob) => {
      const held = cohort.expected[blob]
      return hash && held ? await source.blob(held) : null
    }),
  )
  yield blobStep(cohort, fetched, points, ceremony, source.random, nearOf(record, cohort))
}

/** The scalar that most of a sum's scalars equal, because the model does not fill its blobs. */
function nearOf(record: RoundRecord, cohort: Cohort): bigint {
  if (!record.hasDecoys || record.round === STATISTICS_ROUND) return 0n
  const weights = cohort.survivors.map((index) => BigInt(record.hospitals[index]?.weight ?? 0))
  return emptyScalar(
    weights.reduce((sum, one) => sum + one, 0n),
    record.layout,
  )
}

function running(key: string, title: string): Step {
  return { key, title, state: 'running', lines: [] }
}
