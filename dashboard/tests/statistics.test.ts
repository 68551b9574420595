import { expect, test } from 'vitest'
import { barsOf, formatNumber, missingShare, outlineOf } from '../src/lib/statistics'

const noisy = { edges: [0, 10, 20, 30], names: [], counts: [-4, 8, 2], values: 6, missing: -3 }

test('counts that noise makes negative have no height and no share', () => {
  const bars = barsOf(noisy, 7)
  expect(bars.map((one) => one.height)).toEqual([0, 1, 0.25])
  expect(bars.map((one) => one.share)).toEqual([0, 1, 1 / 3])
  expect(bars.map(({ low, high }) => [low, high])).toEqual([
    [0, 10],
    [10, 20],
    [20, 30],
  ])
  expect(missingShare(noisy)).toBe(0)
  expect(missingShare({ ...noisy, values: -2 })).toBeNull()
})

test('answers that exclude none are shares of all rows', () => {
  const several = { edges: [], names: ['a', 'b'], counts: [5, 10], values: null, missing: null }
  expect(barsOf(several, 10).map((one) => one.share)).toEqual([0.5, 1])
  expect(barsOf(several, 0).map((one) => one.share)).toEqual([null, null])
  expect(missingShare(several)).toBeNull()
})

test('an outline has a part for each bar, and none is higher than the box', () => {
  expect(outlineOf(barsOf(noisy, 7))).toBe(
    'M0.00 100v0.00h33.33V100zM33.33 100v-100.00h33.33V100zM66.67 100v-25.00h33.33V100z',
  )
  expect(outlineOf(barsOf({ ...noisy, counts: [0, 0, 0] }, 0))).not.toContain('NaN')
  expect(outlineOf([])).toBe('')
})

test('numbers have four digits', () => {
  expect([0, 61.23456, 1234.5, 1e-5, -1e300].map(formatNumber)).toEqual([
    '0',
    '61.23',
    '1,235',
    '1.00e-5',
    '-1.00e+300',
  ])
})
