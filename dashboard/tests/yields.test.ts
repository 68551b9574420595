import { expect, test } from 'vitest'
import { yieldOf } from '../src/lib/yields'

const DAY = 86_400
const node = (is_new: boolean, seconds: number, annual_rate: number | null) => ({
  is_new,
  annual_rate,
  realised_yield: { since: 1_000, until: 1_000 + seconds, earned: 2_210_000, lost: 0, net: 2_210_000 },
})

test('a new node shows no yield, however much its first minutes earned', () => {
  expect(yieldOf(node(true, 600, null))).toBeNull()
  expect(yieldOf(node(true, 29 * DAY, 9_000_000))).toBeNull()
})

test('any other node shows its yield with the time that it is of', () => {
  expect(yieldOf(node(false, 30 * DAY, 9_000_000))).toEqual({ net: 2_210_000, seconds: 30 * DAY, aYear: 9_000_000 })
  expect(yieldOf(node(false, 600, null))).toEqual({ net: 2_210_000, seconds: 600, aYear: null })
})
