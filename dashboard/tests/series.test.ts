import { expect, test } from 'vitest'
import { metricsOf, progressOf, qualityOf, shareWorths } from '../src/lib/series'

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

test('a quality is shown from the start on, without an AUC of one class', () => {
  const found = qualityOf([
    { round: 2, accuracy: 0.9, auc: 0.95 },
    { round: 0, accuracy: 0.4, auc: null },
    { round: 1, accuracy: 0.8 },
  ])
  expect(found).toEqual({
    rounds: [0, 1, 2],
    series: [
      { metric: 'accuracy', values: [0.4, 0.8, 0.9] },
      { metric: 'auc', values: [null, null, 0.95] },
    ],
  })
})

test.each([
  [{ r2: 0.4, absolute_error: 0.6, squared_error: 0.5 }, ['r2', 'absolute_error', 'squared_error'], ['r2']],
  [{ log_loss: 1.2, c_index: 0.7, brier: 0.2 }, ['log_loss', 'c_index', 'brier'], ['c_index', 'brier']],
  [{ log_loss: 3, accuracy: 0.4, perplexity: 20 }, ['accuracy', 'log_loss', 'perplexity'], ['accuracy']],
  [{ log_loss: 0.5, accuracy: 0.8, auc: null, brier: 0.1 }, ['accuracy', 'log_loss', 'brier'], ['accuracy', 'brier']],
])('each question has its own figures: %o', (values, figures, charted) => {
  const measured = [{ round: 1, ...values }]
  expect(metricsOf(measured, 3)).toEqual(figures)
  expect(qualityOf(measured).series.map(({ metric }) => metric)).toEqual(charted)
})

test('a share is worth what stands behind it', () => {
  const change = (time: number, assets: string, shares: string) => ({ time, assets, shares })
  expect(shareWorths([change(2, '90', '100'), change(1, '100', '100'), change(3, '0', '0')])).toEqual([
    { time: 1, worth: 1_000_000 },
    { time: 2, worth: 900_000 },
  ])
})
