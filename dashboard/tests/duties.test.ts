import { describe, expect, test } from 'vitest'
import { parsePercent } from '../src/lib/amounts'
import { dutiesOf, type Part } from '../src/lib/duties'

const ME = '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'
const DEADLINE = 1_000
const NOW = 900
type Task = Part['task']
type Round = NonNullable<Part['round']>
type Cohort = Round['cohorts'][number]

const TERMS = {
  masked: true,
  rounds: 10,
  max_hospitals: 4,
  min_cohort_size: 2,
  hospital_bond: '1000',
  voter_bond: '200',
  aggregator_bond: '4000',
  aggregator_share_bps: 1_000,
  harmful_slash_bps: 2_000,
  withheld_slash_bps: 200,
  not_revealed_slash_bps: 1_000,
  not_published_slash_bps: 5_000,
  publish_window: 30,
} as Task['terms']

function task(role: Part['role'], changes: Partial<Task> & { position?: number; bond?: string }): Task {
  const { position = 1, bond = TERMS[`${role}_bond`], ...others } = changes
  const me = { account: ME, role, position, weight: 1, accepted: 0, joined_at: 1, earned: '0', slashed: '0', bond }
  return {
    task: 1,
    name: null,
    phase: 'joining',
    round: 1,
    deadline: DEADLINE,
    pool: '1000000',
    terms: TERMS,
    participants: [{ ...me, role: 'hospital', account: '0x01', position: 0 }, me],
    ...others,
  }
}

function cohort(changes: Partial<Cohort> = {}): Cohort {
  const found: Cohort = {
    cohort: 0,
    members: [0, 1],
    survivors: [],
    median: null,
    accepted: null,
    fate: 'open',
    is_flipped: null,
    blobs: [],
  }
  return { ...found, ...changes }
}

function round(committed: number[] = [], cohorts = [cohort()], ballots: object[] = []): Round {
  return {
    round: 1,
    cohorts,
    commitments: committed.map((position) => ({ position })) as Round['commitments'],
    committee: { ballots } as Round['committee'],
  }
}

function due(role: Part['role'], given: Parameters<typeof task>[1], of: Round | null, now = NOW) {
  return dutiesOf([{ role, task: task(role, given), round: of }], ME, now)
}

const ballot = (verdict: string, commitment: string | null = '0x11') => ({
  voter: ME.toLowerCase(),
  verdict,
  commitment,
})

describe('a hospital', () => {
  test('commits, and is not slashed if it does not', () => {
    expect(due('hospital', { phase: 'committing' }, round([0]))).toMatchObject([
      { deed: 'commit', by: DEADLINE, isOverdue: false, slash: null, role: 'hospital', task: 1, round: 1 },
    ])
    expect(due('hospital', { phase: 'committing' }, round([0, 1]))).toEqual([])
    expect(due('hospital', { phase: 'committing', deadline: 0 }, round([0]))).toEqual([]) // a shard that waits for others
  })

  test('that was assigned to no cohort has nothing to do', () => {
    expect(due('hospital', { phase: 'committing', position: 7 }, round())).toEqual([])
    expect(due('hospital', { phase: 'committing' }, null)).toEqual([])
  })

  test('hands over what it has committed to, or is slashed', () => {
    expect(due('hospital', { phase: 'uploading' }, round([0, 1]))).toMatchObject([
      { deed: 'handOver', slash: { bps: 200, amount: 20n } },
    ])
    expect(due('hospital', { phase: 'uploading' }, round([0]))).toEqual([])
  })

  test('loses no more than the fee for it, and no more than the bond still is', () => {
    const fee = { phase: 'uploading', pool: '2000' } as const // 200 a round, 20 of it the fee, of 4 hospitals
    expect(due('hospital', fee, round([0, 1]))[0]?.slash?.amount).toBe(5n)
    const worn = { phase: 'uploading', bond: '7' } as const
    expect(due('hospital', worn, round([0, 1]))[0]?.slash?.amount).toBe(7n)
  })

  test('of a cohort that fell has nothing to hand over', () => {
    expect(due('hospital', { phase: 'uploading' }, round([1]))).toEqual([])
  })

  test('answers while its sum is masked', () => {
    const open = round([0, 1], [cohort({ survivors: [0, 1] })])
    expect(due('hospital', { phase: 'publishing' }, open)).toMatchObject([{ deed: 'unmask', slash: null }])
    const plain = { phase: 'publishing', terms: { ...TERMS, masked: false } } as const
    const published = round([0, 1], [cohort({ survivors: [0, 1], fate: 'published' })])
    for (const nothing of [
      due('hospital', plain, open),
      due('hospital', { phase: 'publishing', round: 0 }, open),
      due('hospital', { phase: 'publishing' }, published),
      due('hospital', { phase: 'publishing' }, round([0, 1], [cohort({ survivors: [0] })])),
    ])
      expect(nothing).toEqual([])
  })

  test('submits evidence before the last third of disputing, if its cohort is accused', () => {
    const accused = round([0, 1], [cohort({ survivors: [0, 1], fate: 'accused' })])
    expect(due('hospital', { phase: 'disputing' }, accused)).toMatchObject([
      { deed: 'submitEvidence', by: 970, slash: { bps: 2_000, amount: 200n } },
    ])
    expect(due('hospital', { phase: 'disputing' }, accused, 971)).toEqual([])
    expect(due('hospital', { phase: 'disputing' }, round([0, 1], [cohort({ survivors: [0, 1] })]))).toEqual([])
  })
})

describe('a voter', () => {
  test('scores, unless it has or stands down', () => {
    expect(due('voter', { phase: 'scoring' }, round())).toMatchObject([{ deed: 'score', slash: null }])
    for (const verdict of ['not_revealed', 'stood_down'])
      expect(due('voter', { phase: 'scoring' }, round([], [], [ballot(verdict)]))).toEqual([])
  })

  test('reveals what it has committed to, or is slashed', () => {
    const hidden = round([], [], [ballot('not_revealed')])
    expect(due('voter', { phase: 'revealing' }, hidden)).toMatchObject([
      { deed: 'reveal', slash: { bps: 1_000, amount: 20n } },
    ])
    for (const ballots of [[ballot('scored')], [ballot('does_not_match')], [ballot('stood_down', null)], []])
      expect(due('voter', { phase: 'revealing' }, round([], [], ballots))).toEqual([])
  })
})

test.each([
  ['uploading', 'fixSurvivors'],
  ['publishing', 'publish'],
  ['disputing', 'nameCheaters'],
  ['disclosing', 'discloseDecoys'],
] as const)('an aggregator in %s has to %s, or is slashed', (phase, deed) => {
  expect(due('aggregator', { phase }, round())).toMatchObject([{ deed, slash: { bps: 5_000, amount: 2_000n } }])
})

test.each(['joining', 'forming', 'drawing', 'ended'] as const)('nobody has anything to do in %s', (phase) => {
  for (const role of ['hospital', 'voter', 'aggregator'] as const) expect(due(role, { phase }, round())).toEqual([])
})

test('the nearest deadline comes first, and what is too late is said to be', () => {
  const part = (number: number, deadline: number): Part => ({
    role: 'aggregator',
    task: task('aggregator', { task: number, phase: 'publishing', deadline }),
    round: round(),
  })
  const found = dutiesOf([part(1, 950), part(3, 800), part(2, 950), part(4, NOW)], ME, NOW)
  expect(found.map((one) => [one.task, one.isOverdue])).toEqual([
    [3, true],
    [4, false], // the chain takes what comes at the deadline
    [1, false],
    [2, false],
  ])
})

test.each([
  ['0', 0],
  ['12.5', 1_250],
  [' 100 ', 10_000],
  ['0.01', 1],
  ['100.01', null],
  ['101', null],
  ['12.345', null],
  ['-1', null],
  ['5 %', null],
  ['', null],
])('%j is so many basis points: %j', (text, bps) => expect(parsePercent(text)).toBe(bps))
