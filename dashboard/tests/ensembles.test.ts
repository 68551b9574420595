import { expect, test } from 'vitest'
import { digestOf, isEnsemble, mixed, orderOf, weightIn, weightsOf } from '../src/lib/ensembles'

const NUMBER = 2 ** 48 + 3

test('numbers of ensembles are above those of tasks', () => {
  expect([1, 2 ** 48, NUMBER].map(isEnsemble)).toEqual([false, false, true])
  expect(orderOf(NUMBER)).toBe(3)
})

test('the digest is that of Python, also for a gain that no number of JSON keeps', () => {
  const members = [
    { task: 7, gain: '30000', sha256: 'ab'.repeat(32) },
    { task: 9, gain: '79228162514264337593543950335', sha256: 'cd'.repeat(32) },
  ]
  expect(digestOf(31337, NUMBER, members)).toBe('9fb08c4643e5dc94aba41694cd67ef7dc4c6cbf0d573ac63e698e293284b59cf')
  expect(digestOf(31337, NUMBER, [...members].reverse())).not.toBe(digestOf(31337, NUMBER, members))
  expect(digestOf(1, NUMBER, members)).not.toBe(digestOf(31337, NUMBER, members))
})

test('answers are weighed by gains', () => {
  const weights = weightsOf(['30000', '10000'])
  expect(weights).toEqual([0.75, 0.25])
  const first = [[0.5, 0.5], [1, 0]] // prettier-ignore
  const second = [[0.1, 0.9], [0, 1]] // prettier-ignore
  expect(mixed(weights, [first, second])).toEqual([[0.4, 0.6], [0.75, 0.25]]) // prettier-ignore
  expect(mixed(weights, [first, [[0.1, 0.9]]])[1]).toEqual([NaN, NaN]) // a member without an answer
})

test('a weight is that of the task, not of another place or number', () => {
  const members = [
    { task: 7, weight: 750_000 },
    { task: 70, weight: 250_000 },
  ]
  expect([7, 70, 0, 1, 2 ** 53].map((task) => weightIn(members, task))).toEqual([750_000, 250_000, 0, 0, 0])
  expect(weightIn([], 7)).toBe(0)
})
