import { expect, test } from 'vitest'
import { curveOf, leadersOf, openOf } from '../src/lib/standings'

type Round = Parameters<typeof leadersOf>[0][number]
const standing = (hospital: string, median: number | null, rank: number | null, reward = '0') => ({
  hospital,
  median,
  rank,
  reward,
})
const token = (n: number) => `${n}000000000000000000`
const rounds: Round[] = [
  { round: 3, outcome: 'pending', standings: [standing('a', null, null), standing('c', null, null)] },
  { round: 2, outcome: 'settled', standings: [standing('b', 500, 1, token(9)), standing('a', -20, null)] },
  {
    round: 1,
    outcome: 'settled',
    standings: [standing('a', 900, 1, token(5)), standing('b', 700, 2, token(4)), standing('c', null, null)],
  },
]

test('the trainer that earned most leads, with its latest rank', () => {
  expect(leadersOf(rounds)).toEqual([
    { hospital: 'b', firsts: 1, ranked: 2, rank: 1, median: 500, earned: BigInt(token(13)) },
    { hospital: 'a', firsts: 1, ranked: 1, rank: null, median: -20, earned: BigInt(token(5)) },
    { hospital: 'c', firsts: 0, ranked: 0, rank: null, median: null, earned: 0n },
  ])
})

test('a curve goes over settled rounds, with a gap where the trainer has no median', () => {
  expect(curveOf(rounds, 'a')).toEqual({ rounds: [1, 2], own: [900, -20], best: [900, 500] })
  expect(curveOf(rounds, 'c')).toEqual({ rounds: [1, 2], own: [null, null], best: [900, 500] })
})

test('a round that is not over has trainers, and no ranks', () => {
  expect(openOf(rounds)).toEqual({ round: 3, trainers: 2 })
  expect(openOf(rounds.slice(1))).toBeNull()
})
