/** What a task's settled training rounds have come to, by round, oldest first. All in millionths. */

export interface ScoredRound {
  round: number
  outcome: string
  medians: readonly number[]
  accepted: readonly number[]
}

export interface Progress {
  rounds: number[]
  /** Sum of what the accepted cohorts' medians say on average, from the start on. */
  gains: number[]
  /** By cohort, then by round; null where a round had fewer. */
  cohorts: (number | null)[][]
}

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
