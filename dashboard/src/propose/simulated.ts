/** The file of `consilium simulate --output`, from a stranger's or one's own disk, as a trusted value. Pure. */
import { fieldOf, isKey } from '../lib/fields'
import { METRICS, type MetricName, type Quality } from '../lib/metrics'

export const MOST_BYTES = 16 * 2 ** 20
const SCHEMA = 'consilium.simulation/1'
const MOST_ROUNDS = 10_000 // of a task file
const MOST_COHORTS = 64
const MOST_HOSPITALS = 256

export interface SimulatedRound {
  cohorts: number
  rejected: number
  /** Hospitals. */
  slashed: number
  absent: number
  /** To all parties, in the token's smallest unit. */
  paid: bigint
}

/** `course`: the metric at the start (round 0), and after each round. */
export interface Simulated {
  sections: Readonly<Record<string, string>>
  metric: MetricName
  course: Quality[]
  pooled: number | null
  rounds: SimulatedRound[]
}

export type Refusal =
  | { name: 'tooLarge' }
  | { name: 'noJson' }
  | { name: 'foreign' }
  | { name: 'grid' }
  | { name: 'malformed'; field: string }

export class SimulatedRefused extends Error {
  override name = 'SimulatedRefused'
  readonly why: Refusal

  constructor(why: Refusal) {
    super(why.name)
    this.why = why
  }
}

const malformed = (field: string) => new SimulatedRefused({ name: 'malformed', field })

function listOf(value: unknown, most: number, field: string): unknown[] {
  if (!Array.isArray(value) || value.length > most) throw malformed(field)
  return value as unknown[]
}

function metricOf(value: unknown, metric: MetricName, field: string): number | null {
  const found = fieldOf(value, metric)
  if (found === null || found === undefined) return null
  if (typeof found !== 'number' || !Number.isFinite(found)) throw malformed(field)
  return found
}

/** Checks a file's text. Throws SimulatedRefused. */
export function parseSimulated(text: string): Simulated {
  if (text.length > MOST_BYTES) throw new SimulatedRefused({ name: 'tooLarge' })
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    throw new SimulatedRefused({ name: 'noJson' })
  }
  if (fieldOf(read, 'schema') !== SCHEMA)
    throw new SimulatedRefused({ name: Array.isArray(fieldOf(read, 'rows')) ? 'grid' : 'foreign' })
  const metric = fieldOf(read, 'metric')
  const known = METRICS.find((one) => one === metric)
  if (known === undefined) throw malformed('metric')
  const rounds = listOf(fieldOf(read, 'rounds'), MOST_ROUNDS, 'rounds')
  return {
    sections: sectionsOf(fieldOf(read, 'sections')),
    metric: known,
    course: [fieldOf(read, 'start'), ...rounds.map((one) => fieldOf(one, 'metrics'))].map((one, round) => ({
      round,
      [known]: metricOf(one, known, round === 0 ? 'start' : `rounds[${round - 1}].metrics`),
    })),
    pooled: metricOf(fieldOf(read, 'pooled'), known, 'pooled'),
    rounds: rounds.map((one, index) => roundOf(one, index)),
  }
}

function sectionsOf(value: unknown): Readonly<Record<string, string>> {
  const entries = typeof value === 'object' && value ? Object.entries(value) : []
  if (entries.length === 0 || entries.length > 64) throw malformed('sections')
  for (const [, digest] of entries)
    if (typeof digest !== 'string' || !/^[0-9a-f]{64}$/.test(digest)) throw malformed('sections')
  return Object.fromEntries(entries)
}

function roundOf(value: unknown, index: number): SimulatedRound {
  const inRound = (field: string) => `rounds[${index}].${field}`
  const list = (field: string, most: number) => listOf(fieldOf(value, field), most, inRound(field))
  const flags = (field: string) => {
    const found = list(field, MOST_COHORTS)
    if (!found.every((one) => typeof one === 'boolean')) throw malformed(inRound(field))
    return found
  }
  if (fieldOf(value, 'round') !== index + 1) throw malformed(inRound('round'))
  const [judged, accepted] = [flags('judged'), flags('accepted')]
  if (judged.length !== accepted.length) throw malformed(inRound('judged'))
  const paid = fieldOf(value, 'paid')
  if (typeof paid !== 'string' || !/^\d{1,39}$/.test(paid)) throw malformed(inRound('paid'))
  return {
    cohorts: judged.filter(Boolean).length,
    rejected: judged.filter((is, cohort) => is && accepted[cohort] === false).length,
    slashed: list('slashed', MOST_HOSPITALS).length,
    absent: list('absent', MOST_HOSPITALS).length,
    paid: BigInt(paid),
  }
}

/** The sections of the form's task that the simulated task does not have in this form, by name. */
export function differing(simulated: Simulated, sections: Readonly<Record<string, string>>): string[] {
  return Object.keys(sections).filter(
    (name) => !isKey(name, simulated.sections) || simulated.sections[name] !== sections[name],
  )
}

export interface Forecast {
  cohorts: number
  rejected: number
  slashed: number
  absent: number
  void: number
  paid: bigint
  /** The round that paid most. */
  most: bigint
}

export function forecastOf({ rounds }: Simulated): Forecast {
  const sum = (of: (round: SimulatedRound) => number) => rounds.reduce((all, one) => all + of(one), 0)
  return {
    cohorts: sum((one) => one.cohorts),
    rejected: sum((one) => one.rejected),
    slashed: sum((one) => one.slashed),
    absent: sum((one) => one.absent),
    void: rounds.filter((one) => one.cohorts === 0).length,
    paid: rounds.reduce((all, one) => all + one.paid, 0n),
    most: rounds.reduce((most, one) => (one.paid > most ? one.paid : most), 0n),
  }
}
