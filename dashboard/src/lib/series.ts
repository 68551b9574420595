/** The values of the charts, from the API's lists. Scores and worths are in millionths. */
import type { MetricName, Quality } from './metrics'

/** Sums by month of UTC, such as "2026-11", the latest first. */
export function byMonth(amounts: readonly { time: number; amount: bigint }[]): { month: string; amount: bigint }[] {
  const found = new Map<string, bigint>()
  for (const { time, amount } of amounts) {
    const month = new Date(time * 1000).toISOString().slice(0, 7)
    found.set(month, (found.get(month) ?? 0n) + amount)
  }
  return [...found]
    .map(([month, amount]) => ({ month, amount }))
    .toSorted((one, other) => (one.month < other.month ? 1 : -1))
}

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

/** A metric by round, sorted; null where it was not measured. */
export function qualityOf(
  measured: readonly Quality[],
  metric: MetricName,
): { rounds: number[]; values: (number | null)[] } {
  const sorted = measured.toSorted((one, other) => one.round - other.round)
  return { rounds: sorted.map((one) => one.round), values: sorted.map((one) => one[metric] ?? null) }
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

/** The values whose labels differ from the one before: a day is named once. */
export function named(values: readonly number[], shown: (value: number) => string): number[] {
  return values.filter((value, at) => at === 0 || shown(value) !== shown(values[at - 1] ?? value))
}
