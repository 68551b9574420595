/**
 * All charts of the dashboard. To add one: put the function that makes its values into `lib/series.ts`, and a component
 * here that hands them to `Chart`, with its words in `strings`. A page shows that component in a card.
 */
import { lazy, Suspense } from 'react'
import type { Schemas } from '../api/client'
import { formatFixed, formatScore, formatTokens, formatWhole } from '../lib/amounts'
import type { Compared } from '../lib/compared'
import { isKey } from '../lib/fields'
import { axisOf, formatPlain, type MetricName, type Quality, type Scale } from '../lib/metrics'
import { calibrationOf, type Curve } from '../lib/report'
import { amountsOf, progressOf, qualityOf, shareWorths } from '../lib/series'
import type { curveOf } from '../lib/standings'
import { formatDay, formatTime } from '../lib/times'
import * as say from '../strings'
import type { ChartProps } from './chart'

const Chart = lazy(() => import('./chart')) // with d3, which no page needs at once

/** The space of a chart until it is there. */
export function ChartRoom() {
  return <div className="chart-room" />
}

function Drawn(props: ChartProps) {
  return (
    <Suspense fallback={<ChartRoom />}>
      <Chart {...props} />
    </Suspense>
  )
}

/** A task's gain by round, and the improvements of its first cohorts. `metric`: of the task file, if it is known. */
export function ProgressChart({ of, metric }: { of: readonly Schemas['RoundSummary'][]; metric: string | undefined }) {
  const words = say.task
  const { rounds, gains, cohorts } = progressOf(of)
  return (
    <Drawn
      caption={words.progress}
      across={{ name: say.columns.round, values: rounds, shown: String }}
      series={[
        { name: words.total, values: gains },
        ...cohorts.map((values, cohort) => ({ name: words.cohort(cohort), values })),
      ].slice(0, 4)}
      unit={isKey(metric, words.unit) ? words.unit[metric] : words.unitUnknown}
      shown={formatScore}
      empty={rounds.length ? words.oneRound : words.noneSettled}
    />
  )
}

/** A trainer's median improvement by round, beside the best one. */
export function TrainerChart(props: {
  caption: string
  of: ReturnType<typeof curveOf>
  names: { own: string; best: string }
}) {
  const { rounds, own, best } = props.of
  return (
    <Drawn
      caption={props.caption}
      across={{ name: say.columns.round, values: rounds, shown: String }}
      series={[
        { name: props.names.own, values: own },
        { name: props.names.best, values: best },
      ]}
      unit={say.task.unitUnknown}
      shown={formatScore}
      empty={rounds.length ? say.task.oneRound : say.task.noneSettled}
    />
  )
}

/** A metric of a model after each round, from the start on. */
export function QualityChart(props: { of: readonly Quality[]; metric: MetricName; scale: Scale | null }) {
  const { of, metric, scale } = props
  const { rounds, values } = qualityOf(of, metric)
  return (
    <Drawn
      caption={say.quality.metric[metric]}
      across={{ name: say.columns.round, values: rounds, shown: String }}
      series={[{ name: say.quality.metric[metric], values }]}
      unit={axisOf(metric, scale)}
      shown={(value) => formatPlain(metric, value, scale)}
      empty={say.quality.oneRound}
    />
  )
}

/** One metric of several tasks. Errors in deviations of several tasks have no common unit. */
export function ComparedChart({ of, scale }: { of: Compared; scale: Scale | null }) {
  const { metric, rounds, lines } = of
  const unit = lines.length > 1 ? null : scale
  return (
    <Drawn
      caption={say.quality.metric[metric]}
      across={{ name: say.columns.round, values: rounds, shown: String }}
      series={lines.map(({ task, values }) => ({ name: say.tasks.unnamed(task), values }))}
      unit={axisOf(metric, unit)}
      shown={(value) => formatPlain(metric, value, unit)}
      empty={say.quality.oneRound}
    />
  )
}

/** Observed shares over predicted probabilities. */
export function CalibrationChart({ of }: { of: readonly Curve[] }) {
  const words = say.report
  const { across, series } = calibrationOf(of, words)
  return (
    <Drawn
      caption={words.calibration}
      across={{ name: words.predicted, values: across, shown: (value) => formatFixed(value, 2) }}
      series={series}
      unit={words.observed}
      shown={(value) => formatFixed(value, 2)}
      empty={words.noCurve}
    />
  )
}

/** Amounts of a node by day or month, each of a name and a field. */
export function AmountsChart(props: {
  caption: string
  of: readonly Schemas['Period'][]
  series: readonly (readonly [string, 'assets' | 'rewarded' | 'burnt'])[]
}) {
  const words = say.node
  return (
    <Drawn
      caption={props.caption}
      across={{ name: say.columns.time, values: props.of.map((one) => one.since), shown: formatDay }}
      series={props.series.map(([name, field]) => ({ name, values: amountsOf(props.of, field) }))}
      unit={words.tokens}
      shown={(value) => formatTokens(BigInt(Math.round(value)) * 10n ** 12n)}
      empty={words.onePeriod}
    />
  )
}

/** The worth of a node's share over time. */
export function WorthChart({ of }: { of: readonly Schemas['PoolChange'][] }) {
  const words = say.node
  const worths = shareWorths(of)
  return (
    <Drawn
      caption={words.history}
      across={{ name: say.columns.time, values: worths.map((one) => one.time), shown: formatTime }}
      series={[{ name: words.history, values: worths.map((one) => one.worth), isStep: true }]}
      unit={words.worthUnit}
      shown={(worth) => formatFixed(worth / 1e6, 4)}
      empty={words.noHistory}
      flat={words.flat}
    />
  )
}

/** Predictions sold until each day. */
export function SalesChart({ of }: { of: readonly Schemas['SoldDay'][] }) {
  const words = say.market
  return (
    <Drawn
      caption={words.byDay}
      across={{ name: say.columns.time, values: of.map(({ day }) => day), shown: formatDay }}
      series={[{ name: words.predictions, values: of.map(({ predictions }) => predictions), isStep: true }]}
      unit={words.predictions}
      shown={formatWhole}
      empty={words.oneDay}
    />
  )
}
