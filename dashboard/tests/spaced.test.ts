import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { spaced } from '../src/lib/spaced'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

test('the first call runs soon, and calls in a row are one run', () => {
  const run = vi.fn()
  const one = spaced(300, 5_000, run)
  for (let n = 0; n < 10; n++) one.call()
  vi.advanceTimersByTime(299)
  expect(run).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(run).toHaveBeenCalledTimes(1)
})

test('a call each second runs once in five, and the last one is not lost', () => {
  const run = vi.fn()
  const one = spaced(300, 5_000, run)
  for (let second = 0; second < 10; second++) {
    one.call()
    vi.advanceTimersByTime(1_000)
  }
  expect(run).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(5_000)
  expect(run).toHaveBeenCalledTimes(3)
  vi.advanceTimersByTime(60_000)
  expect(run).toHaveBeenCalledTimes(3)
})

test('after a calm the next call runs soon', () => {
  const run = vi.fn()
  const one = spaced(300, 5_000, run)
  one.call()
  vi.advanceTimersByTime(10_000)
  one.call()
  vi.advanceTimersByTime(300)
  expect(run).toHaveBeenCalledTimes(2)
})

test('nothing runs after stop', () => {
  const run = vi.fn()
  const one = spaced(300, 5_000, run)
  one.call()
  one.stop()
  vi.advanceTimersByTime(60_000)
  expect(run).not.toHaveBeenCalled()
})
