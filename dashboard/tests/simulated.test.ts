import { expect, test } from 'vitest'
import vector from '../../tests/vectors/simulation.json'
import { differing, forecastOf, parseSimulated, SimulatedRefused, type Refusal } from '../src/propose/simulated'

const whole = JSON.stringify(vector)
/** The file with other fields. */
const changed = (fields: object) => JSON.stringify({ ...vector, ...fields })
/** The file with other fields of its first round. */
const first = (fields: object) => changed({ rounds: [{ ...vector.rounds[0], ...fields }] })

function refusal(text: string): Refusal | null {
  try {
    parseSimulated(text)
    return null
  } catch (error) {
    if (error instanceof SimulatedRefused) return error.why
    throw error
  }
}

test('a file of consilium simulate is read, and adds up', () => {
  const found = parseSimulated(whole)
  expect(found.course.map((one) => one.accuracy)).toEqual([
    vector.start.accuracy,
    ...vector.rounds.map((one) => one.metrics.accuracy),
  ])
  const forecast = forecastOf(found)
  expect(forecast.paid).toBe(Object.values(vector.paid).reduce((sum, one) => sum + BigInt(one), 0n))
  expect(forecast).toMatchObject({
    cohorts: vector.rounds.flatMap((one) => one.judged).filter(Boolean).length,
    absent: vector.rounds.flatMap((one) => one.absent).length,
    slashed: 0,
    void: vector.rounds.filter((one) => !one.judged.includes(true)).length,
  })
})

test('a cohort without a sum is not a rejected one', () => {
  const text = first({ judged: [true, false], accepted: [false, false], slashed: ['a'] })
  expect(parseSimulated(text).rounds[0]).toMatchObject({ cohorts: 1, rejected: 1, slashed: 1 })
})

test('another task is told by the sections that differ', () => {
  const of = parseSimulated(whole)
  expect(differing(of, vector.sections)).toEqual([])
  expect(differing(of, { ...vector.sections, money: 'f'.repeat(64), rounds: '0'.repeat(64) })).toEqual([
    'rounds',
    'money',
  ])
  expect(differing(of, { ...vector.sections, toString: 'f'.repeat(64) })).toEqual(['toString'])
})

test.each([
  ['{', { name: 'noJson' }],
  ['null', { name: 'foreign' }],
  ['[]', { name: 'foreign' }],
  ['{"schema": "consilium.audit/1"}', { name: 'foreign' }],
  ['{"metric": "auc", "rows": [{}]}', { name: 'grid' }],
  [`"${'x'.repeat(16 * 2 ** 20)}"`, { name: 'tooLarge' }],
  [changed({ metric: 'constructor' }), { name: 'malformed', field: 'metric' }],
  [changed({ sections: {} }), { name: 'malformed', field: 'sections' }],
  [changed({ sections: { ...vector.sections, data: '<b>' } }), { name: 'malformed', field: 'sections' }],
  [changed({ start: { accuracy: '0.5' } }), { name: 'malformed', field: 'start' }],
  [whole.replace(/"accuracy":0\.\d+/, '"accuracy":1e999'), { name: 'malformed', field: 'start' }],
  [changed({ rounds: {} }), { name: 'malformed', field: 'rounds' }],
  [changed({ rounds: Array.from({ length: 10_001 }, () => null) }), { name: 'malformed', field: 'rounds' }],
  [changed({ rounds: [null] }), { name: 'malformed', field: 'rounds[0].round' }],
  [first({ round: 2 }), { name: 'malformed', field: 'rounds[0].round' }],
  [first({ judged: [true] }), { name: 'malformed', field: 'rounds[0].judged' }],
  [first({ accepted: [1, 0] }), { name: 'malformed', field: 'rounds[0].accepted' }],
  [first({ accepted: Array(65).fill(true) }), { name: 'malformed', field: 'rounds[0].accepted' }],
  [first({ slashed: Array(257).fill('a') }), { name: 'malformed', field: 'rounds[0].slashed' }],
  [first({ paid: 5 }), { name: 'malformed', field: 'rounds[0].paid' }],
  [first({ paid: '-5' }), { name: 'malformed', field: 'rounds[0].paid' }],
  [first({ paid: '9'.repeat(40) }), { name: 'malformed', field: 'rounds[0].paid' }],
] as const)('a file that is none is refused by name (%#)', (text, why) => {
  expect(refusal(text)).toEqual(why)
})

test('files at the limits are read', () => {
  const rounds = Array.from({ length: 10_000 }, (_, index) => ({
    ...vector.rounds[0],
    round: index + 1,
    judged: Array<boolean>(64).fill(true),
    accepted: Array<boolean>(64).fill(true),
    slashed: [],
    paid: '9'.repeat(39),
  }))
  const file = JSON.stringify({ ...vector, rounds: rounds.map((one) => ({ ...one, metrics: {}, cohorts: [] })) })
  expect(forecastOf(parseSimulated(file))).toMatchObject({ cohorts: 640_000, rejected: 0 })
})
