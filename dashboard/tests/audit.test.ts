import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it, test } from 'vitest'
import type { Step } from '../src/verify/core'
import type { RoundRecord } from '../src/verify/record'
import { canonical, digest, messageFor, roundReport, taskReport, type Audited } from '../src/verify/report'

const of: Audited = {
  task: 3,
  head: { block: 77, hash: '0xab', rounds: 5, ended: [0, 1, 2], blobs: [1, 2, 2] },
  chainId: 31337,
  contract: '0x0000000000000000000000000000000000000001',
  node: 'the node that this site names (localhost)',
}
const step = (key: string, state: Step['state'], line = ''): Step => ({ key, title: key, state, lines: [line] })
const ALL = ['chain', 'record', 'ceremony', 'decoys', 'negatedDelta', 'sum-0', 'blob-0', 'sum-1', 'blob-1']
const allHold = ALL.map((key) => step(key, 'holds'))
const but = (changed: Step) => allHold.map((one) => (one.key === changed.key ? changed : one))
const reported = (steps: Step[], round = 1) => roundReport(of, round, { steps, record: null }, 0)

describe('canonical JSON', () => {
  it('sorts keys at each depth, has no spaces, and keeps big integers as text', () => {
    expect(canonical({ b: [1n << 60n, null, { z: true, a: 'ä"\n' }], a: -1 })).toBe(
      '{"a":-1,"b":["1152921504606846976",null,{"a":"ä\\"\\n","z":true}]}',
    )
  })
  it('is the same for the same value, in any order of its keys', () => {
    expect(digest({ a: 1, b: 2 })).toBe(digest({ b: 2, a: 1 }))
    expect(digest({ a: 1, b: 2 })).not.toBe(digest({ a: 2, b: 1 }))
    expect(digest({})).toBe('44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a')
  })
})

describe('a round', () => {
  it('holds if all of its steps do, under the names of the command line', () => {
    const found = reported(allHold)
    expect(found.verdict).toBe('holds')
    expect(found.checks.map(({ name, result }) => [name, result])).toEqual([
      ['decoys', 'holds'],
      ['sums', 'holds'],
      ['blobs', 'holds'],
    ])
  })
  it.each([
    ['blob-1', 'blobs'],
    ['sum-1', 'sums'],
    ['negatedDelta', 'decoys'],
    ['chain', 'sums'],
  ])('fails if %s does, and says why', (key, name) => {
    const found = reported(but(step(key, 'fails', 'the reason')))
    expect([found.verdict, found.holds]).toEqual(['fails', false])
    expect(found.checks.find((one) => one.name === name)).toEqual({
      name,
      result: 'FAILS',
      detail: `${key}: the reason`,
    })
  })
  it.each(['skipped', 'waits', 'running'] as const)('could not be checked if a step is %s', (state) => {
    const found = reported(but(step('blob-0', state)))
    expect([found.verdict, found.holds]).toEqual(['could not check', true])
    expect(found.checks.find((one) => one.name === 'blobs')?.result).toBe('not checked')
  })
  it('of which nothing could be read has no inputs', () => {
    const found = reported([step('chain', 'skipped', 'no answer')])
    expect([found.verdict, found.inputs, found.subject.outcome]).toEqual(['could not check', null, 'unknown'])
  })
})

test('the digest of a record covers its commitments, and not the block at which it was read', () => {
  const record = {
    block: 9n,
    outcome: 'settled',
    cohorts: [],
    pointHashes: new Map([[0, ['0xcc']]]),
    points: new Map([[0, ['0xaa']]]),
  } as unknown as RoundRecord
  const digestOf = (changed: Partial<RoundRecord>) =>
    roundReport(of, 0, { steps: allHold, record: { ...record, ...changed } }, 0).inputs?.record_sha256
  expect(digestOf({ block: 10n })).toBe(digestOf({}))
  expect(digestOf({ points: new Map([[0, ['0xab']]]) })).not.toBe(digestOf({}))
  expect(digestOf({ pointHashes: new Map([[0, ['0xcd']]]) })).not.toBe(digestOf({}))
})

test('a report names the rounds that it did not come to, and any change of it changes what is signed', () => {
  const made = (rounds: number[]) =>
    taskReport(
      of,
      rounds.map((round) => reported(allHold, round)),
      { started: 1, ended: 2 },
      'test',
    )
  expect(made([0, 1]).left).toEqual([2])
  expect(made([0, 1, 2]).left).toEqual([])
  expect(made([]).not_proven.length).toBeGreaterThan(3)
  const report = made([0])
  const changed = { ...report, rounds: report.rounds.map((one) => ({ ...one, verdict: 'fails' })) }
  expect(messageFor(digest(changed))).not.toBe(messageFor(digest(report)))
})

test('the file that `consilium verify-report` is tested with is what this page writes', async () => {
  const made: Audited = {
    ...of,
    head: { block: 77, hash: `0x${'ab'.repeat(32)}`, rounds: 5, ended: [0, 1, 2, 3], blobs: [1, 2, 2, 2] },
  }
  const record = {
    block: 9n,
    outcome: 'settled',
    cohorts: [{ survivors: [0, 1, 2], expected: [`0x01${'cd'.repeat(31)}`, null] }],
    pointHashes: new Map([[0, ['0xcc']]]),
    points: new Map([[0, ['0xaa']]]),
  } as unknown as RoundRecord
  const rounds = [
    roundReport(made, 0, { steps: allHold, record }, 1_790_000_000.25),
    roundReport(
      made,
      1,
      { steps: but(step('sum-1', 'fails', 'ä "1" ≠ 2\n\u2028 \u{1f600}\u0007')), record },
      1_790_000_001,
    ),
    roundReport(made, 2, { steps: [step('chain', 'skipped')], record: null }, 1_790_000_002),
  ]
  const report = taskReport(
    made,
    rounds,
    { started: 1_790_000_000, ended: 1_790_000_003 },
    'consilium dashboard (test)',
  )
  const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)
  const message = messageFor(digest(report))
  const signature = { account: account.address, message, signature: await account.signMessage({ message }) }
  const file = canonical({ report, sha256: digest(report), signature })
  await expect(file).toMatchFileSnapshot('../../tests/vectors/audit_report.json')
})
