import { expect, test } from 'vitest'
import { payByRound, shareOf } from '../src/lib/contribution'
import { courseOf, phasesOf } from '../src/lib/timeline'

type Step = ReturnType<typeof courseOf>[number]
const said = (step: Step) =>
  (step.kind === 'rounds' ? `${step.from}-${step.to}` : step.kind) + (step.state === 'now' ? '!' : step.state.charAt(1))

test.each([
  ['joining', 0, 5, false, ['joining!', '0-5u', 'endu']],
  ['committing', 0, 5, true, ['joiningo', '0-0!', '1-5u', 'endu']],
  ['scoring', 2, 5, true, ['joiningo', '0-0o', '1-1o', '2-2!', '3-5u', 'endu']],
  ['settling', 5, 5, true, ['joiningo', '0-1o', '2-2o', '3-3o', '4-4o', '5-5!', 'endu']],
  ['ended', 5, 5, true, ['joiningo', '0-2o', '3-3o', '4-4o', '5-5o', 'end!']],
  ['ended', 0, 0, false, ['joiningo', 'end!']],
  [
    'scoring',
    900,
    1000,
    true,
    ['joiningo', '0-896o', '897-897o', '898-898o', '899-899o', '900-900!', '901-1000u', 'endu'],
  ],
] as const)('a course in %s of round %d', (phase, round, last_round, hasBegun, steps) =>
  expect(courseOf({ phase, round, last_round }, hasBegun).map(said)).toEqual(steps),
)

test('a round shows the phases that it has, and trouble only if it is there', () => {
  const names = (...of: Parameters<typeof phasesOf>) => phasesOf(...of).map(({ phase }) => phase)
  expect(names(0, 'committing', true)).toEqual(['committing', 'uploading', 'publishing'])
  expect(names(1, 'scoring', false)).not.toContain('disclosing')
  expect(names(1, 'disputing', true)).toContain('disputing')
  expect(phasesOf(1, 'publishing', true).map(({ state }) => state)).toEqual([
    ...Array<string>(3).fill('done'),
    'now',
    ...Array<string>(4).fill('due'),
  ])
})

const hospital = (account: string, weight: number, accepted: number) => ({
  account,
  role: 'hospital' as const,
  weight,
  accepted,
})

test('shares of the accepted weight are of all hospitals together', () => {
  const all = [
    hospital('a', 10, 3),
    hospital('b', 30, 1),
    { account: 'v', role: 'voter' as const, weight: 0, accepted: 0 },
  ]
  expect(all.map((one) => shareOf(one, all))).toEqual([0.5, 0.5, null])
  expect(shareOf(hospital('a', 10, 0), [hospital('a', 10, 0)])).toBeNull()
})

test('pay is by round and role, without a round that the page of the list cuts', () => {
  const reward = (account: string, round: number, amount: string) => ({
    account,
    role: 'hospital' as const,
    round,
    amount,
  })
  const rewards = [reward('a', 3, '5'), reward('b', 3, '7'), reward('a', 2, '1'), reward('a', 1, '2')]
  const told = (isWhole: boolean) =>
    payByRound(rewards, isWhole, 4).map(({ round, of }) => [round, of(hospital('a', 1, 1))])
  expect(told(true)).toEqual([
    [3, 5n],
    [2, 1n],
    [1, 2n],
  ])
  expect(told(false).map(([round]) => round)).toEqual([3, 2])
  expect(payByRound(rewards, true, 1)[0]?.of({ account: 'a', role: 'voter' })).toBe(0n)
})
