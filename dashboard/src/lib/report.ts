/** A task's report in the form of its charts and tables: whose rows, and the figures on them. */
import * as say from '../strings'
import { formatPlain, METRICS, type MetricName, type Scale } from './metrics'

export interface Measure {
  value: number | null
  low: number | null
  high: number | null
}

interface Bin {
  predicted: number
  observed: number
  low: number
  high: number
}

export interface Curve {
  class_name: string
  bins: readonly Bin[]
}

interface Charted {
  across: number[]
  series: { name: string; values: (number | null)[] }[]
}

export interface CurveNames {
  perfect: string
  low: string
  high: string
}

const MOST_CURVES = 3 // beside the diagonal

const inHundredths = (value: number) => Math.round(100 * value) / 100

/** A metric's value with its 95 % interval; nodes' figures have two decimals. */
export function shownMeasure(metric: MetricName, measure: Measure | undefined, scale: Scale | null): string {
  if (!measure || measure.value === null) return '–'
  const { value, low, high } = measure
  const isCoarse = [value, low, high].every((one) => one === null || one === inHundredths(one))
  const shown = (one: number) => formatPlain(metric, one, scale, isCoarse)
  return low === null || high === null ? shown(value) : `${shown(value)} (${say.report.to(shown(low), shown(high))})`
}

/** The first metrics that one of the groups has. */
export function metricsShown(groups: readonly Record<string, Measure>[], atMost: number): MetricName[] {
  return METRICS.filter((name) => groups.some((one) => one[name]?.value != null)).slice(0, atMost)
}

/**
 * Observed shares over predicted probabilities, from 0 to 1: the diagonal, and the curves; beside a single curve its
 * interval.
 */
export function calibrationOf(curves: readonly Curve[], names: CurveNames): Charted {
  const shown = curves.filter((one) => one.bins.length > 0).slice(0, MOST_CURVES)
  const predicted = shown.flatMap((curve) => curve.bins.map((bin) => inHundredths(bin.predicted)))
  const across = [...new Set([0, ...predicted, 1])].toSorted((one, other) => one - other)
  const values = (curve: Curve, of: (bin: Bin) => number) =>
    across.map((at) => {
      const bin = curve.bins.find((one) => inHundredths(one.predicted) === at)
      return bin ? of(bin) : null
    })
  const series = shown.map((curve) => ({ name: curve.class_name, values: values(curve, (bin) => bin.observed) }))
  const [only] = shown
  if (only && shown.length === 1)
    series.push(
      { name: names.low, values: values(only, (bin) => bin.low) },
      { name: names.high, values: values(only, (bin) => bin.high) },
    )
  return { across: shown.length ? across : [], series: [{ name: names.perfect, values: across }, ...series] }
}

export interface Bar {
  /** Per cent of the width. */
  left: number
  width: number
  from: number
  to: number
}

/** Bars from zero, and their extremes, on one scale. */
export function barsOf(items: readonly { mean: number; low: number; high: number }[]): Bar[] {
  const least = Math.min(0, ...items.map((one) => one.low))
  const most = Math.max(0, ...items.map((one) => one.high))
  const share = (value: number) => (most > least ? (100 * (value - least)) / (most - least) : 0)
  return items.map(({ mean, low, high }) => ({
    left: share(Math.min(0, mean)),
    width: Math.abs(share(mean) - share(0)),
    from: share(low),
    to: share(high),
  }))
}
