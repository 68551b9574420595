/** Metrics: their order, their direction, and their values in units that people know. */
import * as say from '../strings'
import { formatFixed, formatSignificant } from './amounts'

/** In the order in which they are shown, of every question a few. */
export const METRICS = [
  'dice',
  'accuracy',
  'auc',
  'c_index',
  'r2',
  'log_loss',
  'brier',
  'absolute_error',
  'squared_error',
  'perplexity',
  'macro_f1',
  'pr_auc',
  'calibration_error',
] as const
export type MetricName = (typeof METRICS)[number]
export type Quality = { round: number } & { [name in MetricName]?: number | null }

const LOWER_IS_BETTER: readonly MetricName[] = [
  'log_loss',
  'brier',
  'absolute_error',
  'squared_error',
  'perplexity',
  'calibration_error',
]

/** Of an amount: a model's errors are in deviations, and people know its unit. */
export interface Scale {
  unit: string
  deviation: number | null
}

/** True once a training round of the task is over. */
export function hasModel({ round, phase }: { round: number; phase: string }): boolean {
  return round > 1 || (phase === 'ended' && round === 1)
}

/** The first metrics that a model has. */
export function metricsOf(measured: readonly Quality[], atMost: number): MetricName[] {
  return METRICS.filter((name) => measured.some((one) => typeof one[name] === 'number')).slice(0, atMost)
}

export function isLowerBetter(metric: MetricName): boolean {
  return LOWER_IS_BETTER.includes(metric)
}

/** The unit of a metric's values; empty for those without one. */
export function unitOf(metric: MetricName, scale: Scale | null): string {
  const words = say.quality.units
  switch (metric) {
    case 'accuracy':
      return '%'
    case 'log_loss':
      return words.nats
    case 'absolute_error':
      return scale?.deviation ? scale.unit : words.deviations
    case 'squared_error':
      return scale?.deviation ? scale.unit && `${scale.unit}²` : `${words.deviations}²`
    default:
      return ''
  }
}

/** A metric's value without its unit. `isCoarse`: of two decimals only. */
export function formatPlain(
  metric: MetricName,
  value: number | null | undefined,
  scale: Scale | null,
  isCoarse = false,
): string {
  if (typeof value !== 'number') return '–'
  const deviation = scale?.deviation ?? 1
  switch (metric) {
    case 'accuracy':
      return formatFixed(100 * value, isCoarse ? 0 : 1)
    case 'absolute_error':
      return formatSignificant(value * deviation)
    case 'squared_error':
      return formatSignificant(value * deviation ** 2)
    case 'perplexity':
      return formatSignificant(value)
    default:
      return formatFixed(value, isCoarse ? 2 : 3)
  }
}

/** A metric's value with its unit. */
export function formatMetric(metric: MetricName, value: number | null | undefined, scale: Scale | null): string {
  const plain = formatPlain(metric, value, scale)
  return plain === '–' ? plain : `${plain} ${unitOf(metric, scale)}`.trim()
}

/** A name with the unit, for an axis. */
export function axisOf(metric: MetricName, scale: Scale | null): string {
  const unit = unitOf(metric, scale)
  return say.quality.metric[metric] + (unit && `, ${unit}`)
}
