import { expect, test } from 'vitest'
import { formatDistance, formatDuration, formatUtc, timesIn } from '../src/lib/times'

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

test('a time is on the clock of its reader, and in UTC the same for all', () => {
  expect(timesIn('en-GB', 'UTC')(1_795_000_000)).toBe('18 Nov 2026, 11:06:40 UTC')
  expect(timesIn('de', 'Europe/Berlin')(1_795_000_000)).toBe('18.11.2026, 12:06:40 MEZ')
  expect(formatUtc(1_795_000_000)).toBe('2026-11-18T11:06:40Z')
})
