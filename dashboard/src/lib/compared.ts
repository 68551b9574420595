/** Tasks or nodes side by side: which ones, and a figure for each metric that tasks have. */
import { isAccount, same } from './accounts'
import type { MetricName, Quality } from './metrics'
import { metricsOf } from './metrics'

export const MOST_COMPARED = 4

/** The numbers of an address such as `?of=1,2,3`: each once, `MOST_COMPARED` at most; others are left out. */
export function numbersOf(text: string | null): number[] {
  const numbers = (text ?? '').split(',').map((part) => (/^\d{1,16}$/.test(part.trim()) ? Number(part) : 0))
  return [...new Set(numbers.filter((one) => Number.isSafeInteger(one) && one > 0))].slice(0, MOST_COMPARED)
}

/** The nodes that an address of the dashboard names, without doubles. */
export function chosenOf(text: string | null): string[] {
  const nodes = (text ?? '').split(',').filter(isAccount)
  return nodes.filter((one, at) => nodes.findIndex((other) => same(one, other)) === at).slice(0, MOST_COMPARED)
}

interface Measured {
  task: number
  rounds: readonly Quality[]
}

/** A line of each task whose first metric it is, over all rounds that one of them has. */
export interface Compared {
  metric: MetricName
  rounds: number[]
  lines: { task: number; values: (number | null)[] }[]
}

export function comparedOf(all: readonly Measured[]): Compared[] {
  const firsts = all.flatMap(({ task, rounds }) => metricsOf(rounds, 1).map((metric) => ({ metric, task, rounds })))
  const metrics = [...new Set(firsts.map(({ metric }) => metric))]
  return metrics.map((metric) => {
    const own = firsts.filter((one) => one.metric === metric)
    const across = [...new Set(own.flatMap((one) => one.rounds.map(({ round }) => round)))].toSorted(
      (one, other) => one - other,
    )
    const valueAt = (rounds: readonly Quality[], at: number) =>
      rounds.find(({ round }) => round === at)?.[metric] ?? null
    const lines = own.map(({ task, rounds }) => ({ task, values: across.map((at) => valueAt(rounds, at)) }))
    return { metric, rounds: across, lines }
  })
}
