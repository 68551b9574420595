/** The values of the charts, from the API's lists. Scores and worths are in millionths. */

export interface ScoredRound {
  round: number
  outcome: string
  medians: readonly number[]
  accepted: readonly number[]
}

export interface Progress {
  rounds: number[]
  /** By round: the sum over all rounds so far of the accepted cohorts' average median. */
  gains: number[]
  /** By cohort, then by round; null where a round had fewer. */
  cohorts: (number | null)[][]
}

/** The progress of a task: its settled training rounds, oldest first. */
export function progressOf(rounds: readonly ScoredRound[]): Progress {
  const settled = rounds
    .filter((one) => one.round > 0 && one.outcome === 'settled')
    .toSorted((one, other) => one.round - other.round)
  const width = Math.max(0, ...settled.map((one) => one.medians.length))
  let gain = 0
  return {
    rounds: settled.map((one) => one.round),
    gains: settled.map((one) => (gain += mean(one.accepted.map((cohort) => one.medians[cohort] ?? 0)))),
    cohorts: Array.from({ length: width }, (_, cohort) => settled.map((one) => one.medians[cohort] ?? null)),
  }
}

function mean(values: readonly number[]): number {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 0
}

/** Metrics in the order in which they are shown, of every question a few. */
export const METRICS = [
  'dice',
  'accuracy',
  'auc',
  'log_loss',
  'c_index',
  'brier',
  'r2',
  'absolute_error',
  'squared_error',
  'perplexity',
] as const
export type MetricName = (typeof METRICS)[number]
type Quality = { round: number } & { [name in MetricName]?: number | null }
const FROM_ZERO_TO_ONE: readonly MetricName[] = ['dice', 'accuracy', 'auc', 'c_index', 'brier', 'r2']

/** The first metrics that a model has. */
export function metricsOf(measured: readonly Quality[], atMost: number): MetricName[] {
  return METRICS.filter((name) => measured.some((one) => typeof one[name] === 'number')).slice(0, atMost)
}

/** A model's quality by round, sorted: two metrics from 0 to 1. */
export function qualityOf(measured: readonly Quality[]): {
  rounds: number[]
  series: { metric: MetricName; values: (number | null)[] }[]
} {
  const sorted = measured.toSorted((one, other) => one.round - other.round)
  const charted = metricsOf(measured, METRICS.length).filter((name) => FROM_ZERO_TO_ONE.includes(name))
  return {
    rounds: sorted.map((one) => one.round),
    series: charted.slice(0, 2).map((metric) => ({ metric, values: sorted.map((one) => one[metric] ?? null) })),
  }
}

const MILLIONTH = 10n ** 12n // of a token, in the smallest unit

/** Amounts of periods in millionths of a token, rounded down. */
export function amountsOf<Name extends string>(periods: readonly { [key in Name]: string }[], name: Name): number[] {
  return periods.map((one) => Number(BigInt(one[name]) / MILLIONTH))
}

/** A share's worth over a node's history, as a part of its first worth; empty before anybody has shares. */
export function shareWorths(
  changes: readonly { time: number; assets: string; shares: string }[],
): { time: number; worth: number }[] {
  return changes
    .filter((one) => BigInt(one.shares) > 0n)
    .map((one) => ({ time: one.time, worth: Number((BigInt(one.assets) * 1_000_000n) / BigInt(one.shares)) }))
    .toSorted((one, other) => one.time - other.time)
}
