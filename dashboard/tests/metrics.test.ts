import { expect, test } from 'vitest'
import { axisOf, formatMetric, isLowerBetter, METRICS, metricsOf, type MetricName } from '../src/lib/metrics'

const none = { unit: '', deviation: null }
const days = { unit: 'days', deviation: 8 }

test.each<[MetricName, number, typeof days | typeof none, string, string]>([
  ['accuracy', 0.9649, none, '96.5 %', 'Accuracy, %'],
  ['accuracy', 0, none, '0.0 %', 'Accuracy, %'],
  ['auc', 0.98264, none, '0.983', 'AUC'],
  ['c_index', 0.5, none, '0.500', 'C-index'],
  ['r2', -0.25, none, '-0.250', 'R²'],
  ['dice', 0.81, none, '0.810', 'Dice'],
  ['brier', 0.25, none, '0.250', 'Brier score'],
  ['log_loss', 0.693147, none, '0.693 nats a row', 'Log loss, nats a row'],
  ['perplexity', 1234.5, none, '1,230', 'Perplexity'],
  ['absolute_error', 0.6, days, '4.8 days', 'Mean absolute error, days'],
  ['absolute_error', 0.6, { unit: '', deviation: 8 }, '4.8', 'Mean absolute error'],
  ['absolute_error', 0.6, none, '0.6 deviations', 'Mean absolute error, deviations'],
  ['squared_error', 0.5, days, '32 days²', 'Mean squared error, days²'],
  ['squared_error', 0.5, none, '0.5 deviations²', 'Mean squared error, deviations²'],
])('%s of %d has the unit of its question', (metric, value, scale, shown, axis) => {
  expect(formatMetric(metric, value, scale)).toBe(shown)
  expect(axisOf(metric, scale)).toBe(axis)
})

test('a metric without a value has no unit', () => {
  for (const metric of METRICS)
    for (const value of [null, undefined]) expect(formatMetric(metric, value, days)).toBe('–')
})

test('errors and losses are better if lower, all others if higher', () => {
  expect(METRICS.filter(isLowerBetter).toSorted()).toEqual([
    'absolute_error',
    'brier',
    'calibration_error',
    'log_loss',
    'perplexity',
    'squared_error',
  ])
})

// As `shown` of each question in `questions.py`.
test.each([
  [{ accuracy: 0.8, auc: 0.9, log_loss: 0.5, brier: 0.1, pr_auc: 0.9 }, ['accuracy', 'auc', 'log_loss']],
  [{ accuracy: 0.8, auc: null, log_loss: 0.5, brier: 0.1 }, ['accuracy', 'log_loss', 'brier']],
  [{ r2: 0.4, absolute_error: 0.6, squared_error: 0.5 }, ['r2', 'absolute_error', 'squared_error']],
  [{ log_loss: 1.2, c_index: 0.7, brier: 0.2 }, ['c_index', 'log_loss', 'brier']],
  [{ log_loss: 3, accuracy: 0.4, perplexity: 20 }, ['accuracy', 'log_loss', 'perplexity']],
  [{ log_loss: 3, accuracy: 0.9, dice: 0.8, brier: 0.1 }, ['dice', 'accuracy', 'log_loss']],
])('each question has its own figures: %o', (values, figures) =>
  expect(metricsOf([{ round: 0 }, { round: 1, ...values }], 3)).toEqual(figures),
)
