import { expect, test } from 'vitest'
import { blobsOf, MOST_EARLIER, secondsLeft } from '../src/verify/plan'

const TERMS = { decoys: true, updateBlobs: 3, statisticsBlobs: 1 }
const state = (cohorts: bigint, accepted = cohorts, flipped = 0n) => ({
  viableCohorts: cohorts,
  droppedCohorts: 0n,
  acceptedCohorts: accepted,
  flippedCohorts: flipped,
  isVoid: false,
})

test('a round reads its own sums', () => {
  const states = [state(0b1n), state(0b111n), { ...state(0b111n), droppedCohorts: 0b100n }]
  expect([0, 1, 2].map((one) => blobsOf(states, one, TERMS))).toEqual([1, 9, 6])
  expect(blobsOf([{ ...state(0b11n), isVoid: true }], 0, TERMS)).toBe(0)
})

test('a sign-flipped sum needs the accepted sums of all training rounds before', () => {
  const states = [state(0b1n), state(0b11n, 0b01n), state(0b11n), state(0b11n, 0b11n, 0b01n)]
  expect(blobsOf(states, 3, TERMS)).toBe(6 + 9)
  expect(blobsOf(states, 3, { ...TERMS, decoys: false })).toBe(6)
  expect(blobsOf(states, 3, { ...TERMS, updateBlobs: MOST_EARLIER / 3 })).toBe(2 * 200 + MOST_EARLIER)
  expect(blobsOf(states, 3, { ...TERMS, updateBlobs: MOST_EARLIER / 3 + 1 })).toBe(2 * 201) // a page does not read so many
})

test('the time that is left follows the pace of the rounds that are done', () => {
  const blobs = [1, 5, 10]
  const usual = secondsLeft(blobs)
  expect(usual).toBe(secondsLeft([1]) + secondsLeft([5, 10]))
  expect(secondsLeft(blobs, 1, secondsLeft([1]))).toBe(secondsLeft([5, 10]))
  expect(secondsLeft(blobs, 1, 10 * secondsLeft([1]))).toBe(10 * secondsLeft([5, 10]))
  expect(secondsLeft(blobs, 3, 100)).toBe(0)
  expect(secondsLeft([])).toBe(0)
})
