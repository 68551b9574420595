import { expect, test } from 'vitest'
import { named, progressOf, qualityOf, shareWorths } from '../src/lib/series'

test('a model gains what its accepted cohorts gain on average, in settled training rounds', () => {
  const round = (number: number, medians: number[], accepted: number[], outcome = 'settled') => ({
    round: number,
    medians,
    accepted,
    outcome,
  })
  const progress = progressOf([
    round(3, [-50, 40], [1]),
    round(1, [100, 300], [0, 1]),
    round(0, [7], [0]),
    round(2, [], [], 'void'),
    round(4, [10], []),
  ])
  expect(progress).toEqual({
    rounds: [1, 3, 4],
    gains: [200, 240, 240],
    cohorts: [
      [100, -50, 10],
      [300, 40, null],
    ],
  })
})

test('no round, no progress', () => expect(progressOf([])).toEqual({ rounds: [], gains: [], cohorts: [] }))

test('a metric is shown from the start on, with a gap where it was not measured', () => {
  const measured = [{ round: 2, accuracy: 0.9, auc: 0.95 }, { round: 0, accuracy: 0.4, auc: null }, { round: 1 }]
  expect(qualityOf(measured, 'accuracy')).toEqual({ rounds: [0, 1, 2], values: [0.4, null, 0.9] })
  expect(qualityOf(measured, 'auc').values).toEqual([null, null, 0.95])
})

test('a share is worth what stands behind it', () => {
  const change = (time: number, assets: string, shares: string) => ({ time, assets, shares })
  expect(shareWorths([change(2, '90', '100'), change(1, '100', '100'), change(3, '0', '0')])).toEqual([
    { time: 1, worth: 1_000_000 },
    { time: 2, worth: 900_000 },
  ])
})

test('a label stands once on an axis', () => {
  const day = (time: number) => String(Math.floor(time / 86_400))
  expect(named([0, 20_000, 40_000, 90_000, 100_000], day)).toEqual([0, 90_000])
  expect(named([], day)).toEqual([])
})
