import { expect, test } from 'vitest'
import { comparedOf, numbersOf } from '../src/lib/compared'

test.each([
  ['1,2,3', [1, 2, 3]],
  ['3, 1,3', [3, 1]],
  ['1,2,3,4,5,6', [1, 2, 3, 4]],
  ['0,-1,1.5,1e3,x,,99999999999999999999,7', [7]],
  ['', []],
  [null, []],
])('an address names tasks: %s', (text, numbers) => expect(numbersOf(text)).toEqual(numbers))

test('tasks of one metric share a figure, over the rounds that one of them has', () => {
  const found = comparedOf([
    {
      task: 1,
      rounds: [
        { round: 0, accuracy: 0.4 },
        { round: 2, accuracy: 0.9 },
      ],
    },
    { task: 2, rounds: [{ round: 0, r2: 0 }] },
    {
      task: 3,
      rounds: [
        { round: 1, accuracy: 0.7 },
        { round: 0, accuracy: 0.5 },
      ],
    },
    { task: 4, rounds: [] },
  ])
  expect(found).toEqual([
    {
      metric: 'accuracy',
      rounds: [0, 1, 2],
      lines: [
        { task: 1, values: [0.4, null, 0.9] },
        { task: 3, values: [0.5, 0.7, null] },
      ],
    },
    { metric: 'r2', rounds: [0], lines: [{ task: 2, values: [0] }] },
  ])
})
