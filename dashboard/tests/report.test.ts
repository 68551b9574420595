import { expect, test } from 'vitest'
import { barsOf, calibrationOf, metricsShown, shownMeasure } from '../src/lib/report'

const bin = (predicted: number, observed: number) => ({
  predicted,
  observed,
  low: observed - 0.1,
  high: observed + 0.1,
})
const names = { perfect: 'as predicted', low: 'from', high: 'to' }

test('a measure is shown with its interval, if it has one, in the unit of its metric', () => {
  const shown = (metric: 'auc' | 'accuracy' | 'absolute_error', of?: Parameters<typeof shownMeasure>[1]) =>
    shownMeasure(metric, of, { unit: 'days', deviation: 10 })
  expect(shown('auc', { value: 0.8, low: 0.7, high: 0.912 })).toBe('0.800 (0.700 to 0.912)')
  expect(shown('auc', { value: 0.8, low: 0.7, high: 0.9 })).toBe('0.80 (0.70 to 0.90)')
  expect(shown('accuracy', { value: 0.8, low: 0.7, high: 0.912 })).toBe('80.0 (70.0 to 91.2)')
  expect(shown('accuracy', { value: 0.8, low: null, high: null })).toBe('80')
  expect(shown('absolute_error', { value: 0.5, low: 0.41, high: 0.6 })).toBe('5 (4.1 to 6)')
  expect(shown('auc', { value: null, low: null, high: null })).toBe('–')
  expect(shown('auc')).toBe('–')
})

test('one curve stands beside the diagonal with its interval, over the values that it has', () => {
  const found = calibrationOf([{ class_name: 'yes', bins: [bin(0.25, 0.5), bin(0.75, 0.6)] }], names)
  expect(found.across).toEqual([0, 0.25, 0.75, 1])
  expect(found.series.map((one) => one.name)).toEqual(['as predicted', 'yes', 'from', 'to'])
  expect(found.series[0]?.values).toEqual(found.across)
  expect(found.series[1]?.values).toEqual([null, 0.5, 0.6, null])
  expect(found.series[2]?.values).toEqual([null, 0.4, 0.5, null])
})

test('several curves have no interval, and no more of them than colours', () => {
  const curves = ['a', 'b', 'c', 'd'].map((name, at) => ({ class_name: name, bins: [bin(at / 4, 0.5)] }))
  const found = calibrationOf([{ class_name: 'empty', bins: [] }, ...curves], names)
  expect(found.series.map((one) => one.name)).toEqual(['as predicted', 'a', 'b', 'c'])
  expect(calibrationOf([], names).across).toEqual([])
})

test('bars share a scale that includes zero', () => {
  const [first, second] = barsOf([
    { mean: 0.3, low: 0.2, high: 0.4 },
    { mean: -0.1, low: -0.1, high: 0 },
  ])
  expect(first?.left).toBeCloseTo(20)
  expect(first?.width).toBeCloseTo(60)
  expect(first?.to).toBeCloseTo(100)
  expect(second?.left).toBeCloseTo(0)
  expect(second?.width).toBeCloseTo(20)
  expect(barsOf([{ mean: 0, low: 0, high: 0 }])).toEqual([{ left: 0, width: 0, from: 0, to: 0 }])
})

test('metrics are those that some rows have', () => {
  const measure = (value: number | null) => ({ value, low: null, high: null })
  expect(metricsShown([{ auc: measure(null), log_loss: measure(0.4) }, { accuracy: measure(0.7) }], 3)).toEqual([
    'accuracy',
    'log_loss',
  ])
})
