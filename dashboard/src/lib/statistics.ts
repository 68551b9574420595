/** A task's statistics in the form of their charts and tables. Noise can make counts negative: these have no height. */
import { formatPrecise, point } from './amounts'

export interface Counted {
  edges: readonly number[]
  names: readonly string[]
  counts: readonly number[]
  values: number | null
  missing: number | null
}

export interface Bar {
  low: number | null
  high: number | null
  name: string | null
  count: number
  /** Of all values, from 0 to 1; null without any. */
  share: number | null
  /** Of the highest bar, from 0 to 1. */
  height: number
}

/** Bars of the ranges, or else of the named values. `rows`: of all hospitals, where a row can have several answers. */
export function barsOf({ edges, names, counts, values }: Counted, rows: number): Bar[] {
  const of = values ?? rows
  const most = Math.max(0, ...counts)
  return counts.map((count, index) => ({
    low: edges[index] ?? null,
    high: edges[index + 1] ?? null,
    name: names[index] ?? null,
    count,
    share: of > 0 ? Math.min(Math.max(count, 0) / of, 1) : null,
    height: most > 0 ? Math.max(count, 0) / most : 0,
  }))
}

/** The share of rows without a value, from 0 to 1; null if no row can lack one, or there are none. */
export function missingShare({ values, missing }: Counted): number | null {
  if (missing === null || values === null) return null
  const [without, known] = [Math.max(missing, 0), Math.max(values, 0)]
  return without + known > 0 ? without / (without + known) : null
}

/** The outline of all bars in a box of 100 by 100, each as wide as the others. */
export function outlineOf(bars: readonly Bar[]): string {
  const width = 100 / Math.max(bars.length, 1)
  return bars
    .map(
      ({ height }, index) =>
        `M${(index * width).toFixed(2)} 100v${(-100 * height).toFixed(2)}h${width.toFixed(2)}V100z`,
    )
    .join('')
}

/** A number with four digits that count. */
export function formatNumber(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2).replace('.', point)
  return formatPrecise(value)
}
