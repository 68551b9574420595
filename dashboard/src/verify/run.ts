/** All checks of a record that was read, one after the other, as they come. What they need besides is handed in. */
import type { Hex } from 'viem'
import { say } from '../strings'
import { blobStep, canarySteps, recordStep, sumOf, type Fetched, type Step } from './core'
import { PointMalformed, type Point } from './kzg'
import type { Cohort, RoundRecord } from './record'

const words = say.verify

export interface Source {
  /** The ceremony's points. Throws CeremonyWrong, or what fetching throws. */
  ceremony: () => Promise<Point[]>
  blob: (hash: Hex) => Promise<Fetched>
  /** Uniform below 2^128, from a source that nobody can foresee. */
  random: () => bigint
}

/** Steps; one that is running comes again under the same key. */
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
  const loaded = await loadedBy(source)
  yield loaded.step
  if (!loaded.points) return
  if (record.hasCanaries) yield* canaries(record, loaded.points)
  for (const cohort of cohorts) yield* checked(record, cohort, loaded.points, source)
}

async function loadedBy(source: Source): Promise<{ step: Step; points?: Point[] }> {
  const [key, title] = ['ceremony', words.ceremony]
  try {
    const points = await source.ceremony()
    return { step: { key, title, state: 'holds', lines: [words.ceremonyHolds] }, points }
  } catch (error) {
    return { step: { key, title, state: 'fails', lines: [words.ceremonyFails(reason(error))] } }
  }
}

function* canaries(record: RoundRecord, ceremony: readonly Point[]): Generator<Step> {
  try {
    yield* canarySteps(record, ceremony)
  } catch (error) {
    if (!(error instanceof PointMalformed)) throw error
    yield { key: 'retreat', title: words.retreat, state: 'fails', lines: [words.malformed(error.message)] }
  }
}

async function* checked(
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
  yield blobStep(cohort, fetched, points, ceremony, source.random)
}

function running(key: string, title: string): Step {
  return { key, title, state: 'running', lines: [] }
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
