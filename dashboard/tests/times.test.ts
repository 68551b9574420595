import { expect, test } from 'vitest'
import { formatDistance, formatDuration, formatTime } from '../src/lib/times'

test.each([
  [-5, '0 s'],
  [0.9, '0 s'],
  [59, '59 s'],
  [60, '1 min'],
  [93_784, '1 d 2 h'],
  [86_400, '1 d'],
  [86_430, '1 d'],
  [3_661, '1 h 1 min'],
])('%d seconds are %s', (seconds, shown) => expect(formatDuration(seconds)).toBe(shown))

test('a time is ahead or gone', () => {
  expect(formatDistance(200, 100)).toBe('in 1 min 40 s')
  expect(formatDistance(100, 200.4)).toBe('1 min 40 s ago')
  expect(formatDistance(100.4, 100)).toBe('now')
})

test('a time is the same for every reader', () => {
  expect(formatTime(1_795_000_000)).toBe('18 Nov 2026, 11:06:40 UTC')
})
