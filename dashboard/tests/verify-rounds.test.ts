import { concat, keccak256, numberToBytes, numberToHex, slice, type Address, type Hex } from 'viem'
import { describe, expect, it, test } from 'vitest'
import vectors from '../../tests/vectors/decoys.json'
import { firstNegatedDelta, isFlipped, Progress, seedCommitment } from '../src/verify/decoys'
import { negatedDeltaStep, seedStep, sumOf, verdictOf, type Fetched, type Step } from '../src/verify/core'
import {
  BLOB_LENGTH,
  commit,
  compressed,
  EIP2537_LENGTH,
  GENERATOR,
  modulo,
  ORDER,
  parseEip2537,
  SCALARS,
  versionedHash,
} from '../src/verify/kzg'
import type { Cohort, RoundRecord } from '../src/verify/record'
import { verify, type Source } from '../src/verify/run'
import { ceremony } from './verify-ceremony'
import { committedTo } from './verify-points'

type Scalars = Map<number, bigint>

const WEIGHTS = [3, 1, 250, 7, 2, 40]

function blobOf(scalars: Scalars): Uint8Array {
  const blob = new Uint8Array(BLOB_LENGTH)
  for (const [at, scalar] of scalars) blob.set(numberToBytes(scalar, { size: 32 }), at * 32)
  return blob
}

/** What a hospital commits to: small blobs, with two numbers drawn as blinders. */
function update(hospital: number, blob: number): Scalars {
  const drawn = BigInt(keccak256(concat([numberToBytes(hospital + 1), numberToBytes(blob + 1)]))) % ORDER
  return new Map([
    [0, BigInt(hospital + 10 * blob + 1)],
    [77, 5n],
    [SCALARS - 2, drawn],
    [SCALARS - 1, (drawn * 3n) % ORDER],
  ])
}

function weighted(hospitals: number[], blob: number, weights: number[]): Scalars {
  const total: Scalars = new Map()
  for (const hospital of hospitals)
    for (const [at, scalar] of update(hospital, blob))
      total.set(at, modulo((total.get(at) ?? 0n) + scalar * BigInt(weights[hospital] ?? 0)))
  return total
}

interface Made {
  record: RoundRecord
  store: Map<Hex, Uint8Array>
}

/** A plain round of six hospitals in two cohorts, two blobs each: the second is in no sum. */
function plainRound(round = 1): Made {
  const weights = round === 0 ? WEIGHTS.map(() => 1) : WEIGHTS
  const store = new Map<Hex, Uint8Array>()
  const cohort = (index: number, members: number[], survivors: number[]): Cohort => {
    const hashes = [0, 1].map((blob) => {
      const raw = blobOf(weighted(survivors, blob, weights))
      const hash = versionedHash(commit(raw, ceremony))
      store.set(hash, raw)
      return hash
    })
    return {
      index,
      members,
      survivors,
      expected: hashes,
      published: hashes,
      isDropped: false,
      isDisclosed: false,
      isFlipped: false,
    }
  }
  const cohorts = [cohort(0, [0, 1, 2], [0, 2]), cohort(1, [3, 4, 5], [3, 4, 5])]
  const record = {
    chainId: 31337,
    contract: node(99),
    task: 1,
    round,
    outcome: 'settled' as const,
    blobs: 2,
    layout: { updateBits: 8, laneBits: 16 },
    hospitals: WEIGHTS.map((weight, index) => ({ node: node(index), weight })),
    committed: [0, 1, 2, 3, 4, 5],
    isFixed: true,
    cohorts,
    hasDecoys: false,
    decoys: null,
    shown: [],
    openingBlocks: null,
    before: [],
    events: 12,
    block: 99n,
  }
  const points = WEIGHTS.map((_, hospital): [number, Hex[]] => [
    hospital,
    [0, 1].map((blob) => compressed(commit(blobOf(update(hospital, blob)), ceremony))),
  ])
  return { record: committedTo(record, new Map(points)), store }
}

function pointsOf(record: RoundRecord, hospital: number): Hex[] {
  return (record.points.get(hospital) ?? []).map((point) => point ?? '0x')
}

function node(index: number): Address {
  return `0x${String(index + 1).padStart(40, '0')}`
}

async function carriedOut(record: RoundRecord, blob: (hash: Hex) => Fetched): Promise<Map<string, Step>> {
  const steps = new Map<string, Step>()
  let drawn = 1n
  const source: Source = {
    ceremony: () => Promise.resolve(ceremony),
    blob: (hash) => Promise.resolve(blob(hash)),
    coordinates: null,
    random: () => (drawn = modulo(drawn * 0x1234567890abcdefn + 12345n) % 2n ** 128n),
  }
  for await (const step of verify(record, source)) steps.set(step.key, step)
  return steps
}

function from(store: Map<Hex, Uint8Array>) {
  return (hash: Hex): Fetched => {
    const blob = store.get(hash)
    return blob ? { blob } : { missing: true }
  }
}

function states(steps: Map<string, Step>) {
  return Object.fromEntries([...steps].map(([key, { state }]) => [key, state]))
}

function withCohort(record: RoundRecord, index: number, change: Partial<Cohort>): RoundRecord {
  return {
    ...record,
    cohorts: record.cohorts.map((one) => (one.index === index ? { ...one, ...change } : one)),
  }
}

const made = plainRound()
const ALL = {
  record: 'holds',
  ceremony: 'holds',
  'sum-0': 'holds',
  'blob-0': 'holds',
  'sum-1': 'holds',
  'blob-1': 'holds',
}

describe('a plain round', () => {
  it('holds', async () => {
    const steps = await carriedOut(made.record, from(made.store))
    expect(states(steps)).toEqual(ALL)
    expect(verdictOf([...steps.values()])).toBe('holds')
  })

  it('of statistics holds with weights of one, and of no other kind', async () => {
    const { record, store } = plainRound(0)
    expect(states(await carriedOut(record, from(store)))).toEqual(ALL)
    expect(states(await carriedOut({ ...record, round: 1 }, from(store)))).toMatchObject({ 'sum-0': 'fails' })
  })

  it.each([0, 2])('with another weight of survivor %d fails, and there alone', async (hospital) => {
    const hospitals = made.record.hospitals.map((one, at) =>
      at === hospital ? { ...one, weight: one.weight + 1 } : one,
    )
    const steps = await carriedOut({ ...made.record, hospitals }, from(made.store))
    expect(states(steps)).toEqual({ ...ALL, 'sum-0': 'fails' })
    expect(steps.get('sum-0')?.lines[0]).toContain(made.record.cohorts[0]?.expected[0])
  })

  it('with another weight of who is in no sum holds', async () => {
    const hospitals = made.record.hospitals.map((one, at) => (at === 1 ? { ...one, weight: 99 } : one))
    expect(states(await carriedOut({ ...made.record, hospitals }, from(made.store)))).toEqual(ALL)
  })

  it.each<[string, (own: Hex[]) => Hex[]]>([
    ['another’s', () => pointsOf(made.record, 1)],
    ['its own in another order', (own) => own.toReversed()],
    ['the generator', (own) => own.with(0, compressed(GENERATOR))],
    ['no point', (own) => own.with(0, `0x${'ff'.repeat(48)}`)],
    ['a short point', (own) => own.with(0, slice(own[0] ?? '0x', 0, 47))],
  ])('with %s points for a survivor fails, also if it committed to them', async (_, change) => {
    const changed = change(pointsOf(made.record, 2))
    const points = new Map(made.record.hospitals.map((_, hospital) => [hospital, pointsOf(made.record, hospital)]))
    const record = { ...made.record, points: points.set(2, changed) }
    const steps = await carriedOut(record, from(made.store))
    expect(states(steps)).toEqual({ ...ALL, 'sum-0': 'fails' })
    expect(steps.get('sum-0')?.lines[0]).toMatch(/does not have the hash to which it committed/)
    const committed = await carriedOut(committedTo(record, points), from(made.store))
    expect(states(committed)).toEqual({ ...ALL, 'sum-0': 'fails' })
    expect(committed.get('sum-0')?.lines[0]).toMatch(/the contract holds|invalid commitment/)
  })

  it.each<[string, Partial<RoundRecord>]>([
    ['chain', { chainId: 1 }],
    ['contract', { contract: node(98) }],
    ['task', { task: 2 }],
  ])('with hashes for another %s fails', async (_, change) => {
    const steps = await carriedOut({ ...made.record, ...change }, from(made.store))
    expect(states(steps)).toEqual({ ...ALL, 'sum-0': 'fails', 'sum-1': 'fails' })
  })

  it('with a copied hash fails, because it names its hospital', async () => {
    const copied = (of: Map<number, readonly (Hex | null)[]>) => new Map(of).set(2, of.get(0) ?? [])
    const pointHashes = new Map(made.record.pointHashes).set(2, made.record.pointHashes.get(0) ?? [])
    const record = { ...made.record, points: copied(made.record.points), pointHashes }
    expect(states(await carriedOut(record, from(made.store)))).toEqual({ ...ALL, 'sum-0': 'fails' })
  })

  it('without the commitment of a survivor to a blob fails', async () => {
    const points = new Map(made.record.points).set(2, [pointsOf(made.record, 2)[0] ?? '0x', null])
    const steps = await carriedOut({ ...made.record, points }, from(made.store))
    expect(states(steps)).toEqual({ ...ALL, 'sum-0': 'fails' })
    expect(steps.get('sum-0')?.lines).toEqual([`Blob 1: no event shows the commitment of ${node(2)}.`])
  })

  it('needs no commitment that is in no sum', async () => {
    const points = new Map(made.record.points)
    points.delete(1)
    expect(states(await carriedOut({ ...made.record, points }, from(made.store)))).toEqual(ALL)
  })

  it.each([
    ['one too few', [0]],
    ['one too many', [0, 1, 2]],
    ['another', [0, 1]],
  ])('with %s of its survivors fails', async (_, survivors) => {
    const steps = await carriedOut(withCohort(made.record, 0, { survivors }), from(made.store))
    expect(states(steps)).toEqual({ ...ALL, 'sum-0': 'fails' })
  })

  it('fails at once where a survivor has not committed, or has too few points', async () => {
    const committed = made.record.committed.filter((one) => one !== 2)
    const pointHashes = new Map(made.record.pointHashes).set(3, [`0x${'00'.repeat(32)}`])
    for (const change of [{ committed }, { pointHashes }])
      expect(states(await carriedOut({ ...made.record, ...change }, from(made.store)))).toEqual({
        record: 'fails',
      })
  })

  it('fails where the contract holds another hash, or another was published', async () => {
    const [first, second] = made.record.cohorts[0]?.expected ?? []
    if (!first || !second) throw new Error('it has two blobs')
    const swapped = withCohort(made.record, 0, { expected: [second, first], published: [second, first] })
    expect(states(await carriedOut(swapped, from(made.store)))).toMatchObject({ 'sum-0': 'fails' })
    const said = withCohort(made.record, 0, { published: [first, first] })
    expect(states(await carriedOut(said, from(made.store)))).toMatchObject({ 'sum-0': 'fails' })
  })

  it.each([0, 7, 31, 32, 5_000, 64_123, 131_039, 131_071])(
    'with a bit flipped in byte %d of a blob fails, and there alone',
    async (byte) => {
      const [hash] = made.record.cohorts[1]?.published ?? []
      const good = made.store.get(hash ?? '0x')
      if (!hash || !good) throw new Error('it is stored')
      const bad = good.slice()
      bad[byte] = (bad[byte] ?? 0) ^ (1 << (byte % 7))
      const steps = await carriedOut(made.record, from(new Map(made.store).set(hash, bad)))
      expect(states(steps)).toEqual({ ...ALL, 'blob-1': 'fails' })
      expect(verdictOf([...steps.values()])).toBe('fails')
    },
  )

  it.each<[string, Fetched]>([
    ['too short', { blob: new Uint8Array(BLOB_LENGTH - 1) }],
    ['too long', { blob: new Uint8Array(BLOB_LENGTH + 1) }],
    ['empty', { blob: new Uint8Array() }],
    ['not of scalars', { blob: new Uint8Array(BLOB_LENGTH).fill(255) }],
    ['missing', { missing: true }],
  ])('with a blob %s fails', async (_, fetched) => {
    const [, hash] = made.record.cohorts[0]?.published ?? []
    const steps = await carriedOut(made.record, (asked) => (asked === hash ? fetched : from(made.store)(asked)))
    expect(states(steps)).toEqual({ ...ALL, 'blob-0': 'fails' })
    expect(steps.get('blob-0')?.lines).toHaveLength(1)
  })

  it('with a blob out of reach is not checked there', async () => {
    const [, hash] = made.record.cohorts[0]?.published ?? []
    const away = { unreachable: 'timeout' }
    const steps = await carriedOut(made.record, (asked) => (asked === hash ? away : from(made.store)(asked)))
    expect(states(steps)).toEqual({ ...ALL, 'blob-0': 'skipped' })
    expect(verdictOf([...steps.values()])).toBe('partly')
  })

  it('with another’s blob under its hash fails', async () => {
    const [first, second] = made.record.cohorts[0]?.published ?? []
    const other = new Map(made.store).set(first ?? '0x', made.store.get(second ?? '0x') ?? new Uint8Array())
    expect(states(await carriedOut(made.record, from(other)))).toEqual({ ...ALL, 'blob-0': 'fails' })
  })

  it('without the ceremony’s points is not checked any further', async () => {
    const steps: Step[] = []
    const broken = {
      ceremony: () => Promise.reject(new Error('404')),
      blob: from(made.store),
      coordinates: null,
      random: () => 1n,
    }
    for await (const step of verify(made.record, {
      ...broken,
      blob: (hash) => Promise.resolve(broken.blob(hash)),
    }))
      steps.push(step)
    expect(steps.at(-1)).toMatchObject({ key: 'ceremony', state: 'skipped' })
  })
})

describe('a round that is not finished says what is not there yet', () => {
  const pending: RoundRecord = { ...made.record, outcome: 'pending' }
  const none = { expected: [null, null], published: [null, null] }
  it.each<[string, RoundRecord, Record<string, string>]>([
    ['not begun', { ...pending, cohorts: [] }, { record: 'waits' }],
    [
      'no survivors',
      { ...withCohort(withCohort(pending, 0, { survivors: [] }), 1, { survivors: [] }), isFixed: false },
      { record: 'waits' },
    ],
    ['nothing summed', withCohort(pending, 0, none), { ...ALL, 'sum-0': 'waits', 'blob-0': 'waits' }],
    ['nothing published', withCohort(pending, 0, { published: [null, null] }), { ...ALL, 'blob-0': 'waits' }],
    ['void', { ...made.record, outcome: 'void' }, { record: 'holds', sums: 'skipped' }],
    [
      'a cohort dropped',
      withCohort(made.record, 1, { isDropped: true, survivors: [] }),
      { record: 'holds', ceremony: 'holds', 'sum-0': 'holds', 'blob-0': 'holds' },
    ],
  ])('%s', async (_, record, wanted) => {
    const steps = await carriedOut(record, from(made.store))
    expect(states(steps)).toEqual(wanted)
    expect(verdictOf([...steps.values()])).toBe(
      Object.values(wanted).every((one) => one === 'holds') ? 'holds' : 'partly',
    )
  })
})

describe('decoy rounds, by the vectors', () => {
  const rounds = vectors.cases.map((one) => {
    const layout = { updateBits: one.bits, laneBits: one.lane_bits }
    const flipped = one.flipped
    const negatedDelta = concat(one.blobs.map((blob) => blob.negated_delta as Hex))
    const hashes = one.blobs.map((blob) => (flipped ? blob.hash_flipped : blob.hash_as_it_is) as Hex)
    const survivors = one.weights.map((_, index) => index)
    const cohort: Cohort = {
      index: one.cohort,
      members: survivors,
      survivors,
      expected: hashes,
      published: hashes,
      isDropped: false,
      isDisclosed: true,
      isFlipped: flipped,
    }
    const bare = {
      ...made.record,
      task: one.task,
      round: one.round,
      blobs: one.blobs.length,
      layout,
      hospitals: one.weights.map((weight, index) => ({ node: node(index), weight: weight })),
      committed: survivors,
      cohorts: [cohort],
      hasDecoys: true,
      decoys: { seedCommitment: one.seed_commitment as Hex, negatedDeltaDigest: one.negated_delta_digest as Hex },
      shown: one.blobs.map((blob, at) => ({
        cohort: one.cohort,
        blob: at,
        seed: one.seed as Hex,
        negatedDelta,
        first: BigInt(blob.first),
        second: BigInt(blob.second),
      })),
    }
    const points = survivors.map((index): [number, Hex[]] => [
      index,
      one.blobs.map(({ points }) =>
        compressed(parseEip2537(slice(points as Hex, index * EIP2537_LENGTH, (index + 1) * EIP2537_LENGTH))),
      ),
    ])
    return { name: one.name, record: committedTo(bare, new Map(points)), cohort, one }
  })

  it.each(rounds)('$name: sums and seed hold', ({ record, cohort, one }) => {
    expect(seedCommitment(one.seed as Hex)).toBe(one.seed_commitment)
    expect(isFlipped(one.seed as Hex, record.task, record.round, cohort.index)).toBe(cohort.isFlipped)
    expect(sumOf(record, cohort, ceremony).step.state).toBe('holds')
    expect(seedStep(record).state).toBe('holds')
    expect(negatedDeltaStep(record, ceremony, null).state).toBe(cohort.isFlipped ? 'skipped' : 'holds')
  })

  it.each(rounds)('$name: with one thing changed nothing holds', ({ record, cohort }) => {
    const state = (changed: Partial<RoundRecord>, of = cohort) =>
      sumOf({ ...record, ...changed, cohorts: [of] }, of, ceremony).step.state
    const shown = (change: Partial<RoundRecord['shown'][number]>) => ({
      shown: record.shown.map((one) => ({ ...one, ...change })),
    })
    expect(state(shown({ first: (record.shown[0]?.first ?? 0n) + 1n }))).toBe('fails')
    expect(state(shown({ second: 0n }))).toBe('fails')
    expect(state({}, { ...cohort, isFlipped: !cohort.isFlipped })).toBe('fails')
    const heavier = record.hospitals.map((one, at) => (at === 0 ? { ...one, weight: one.weight + 1 } : one))
    expect(state({ hospitals: heavier })).toBe('fails')
    const generators = Array.from({ length: record.blobs }, () => compressed(GENERATOR))
    const points = new Map(record.hospitals.map((_, index) => [index, pointsOf(record, index)]))
    expect(state(committedTo(record, points.set(0, generators)))).toBe('fails')
    expect(state({ shown: [] })).toBe('skipped')
    expect(state(shown({ negatedDelta: concat([record.shown[0]?.negatedDelta ?? '0x', '0x00']) }))).toBe('skipped')
    expect(state({}, { ...cohort, isDisclosed: false })).toBe('waits')
  })

  it('with the wrong seed, or flipped otherwise than it says, is not taken', () => {
    const [one] = rounds
    if (!one) throw new Error('the vectors have some')
    const { record, cohort } = one
    const seedOf = (changed: RoundRecord) => seedStep(changed).state
    expect(seedOf(withCohort(record, cohort.index, { isFlipped: !cohort.isFlipped }))).toBe('fails')
    const seed: Hex = `0x${'11'.repeat(32)}`
    const other = record.shown.map((each) => ({ ...each, seed }))
    expect(seedOf({ ...record, shown: other })).toBe('skipped')
    expect(seedOf({ ...record, shown: [], openingBlocks: 5000 })).toBe('skipped')
    expect(seedOf({ ...record, decoys: null })).toBe('waits')
    expect(seedOf(withCohort(record, cohort.index, { isDisclosed: false }))).toBe('waits')
  })

  test('a first round takes back nothing, or fails', () => {
    const first = rounds.find(({ one }) => one.blobs.some(({ kind }) => kind === 'first'))
    if (!first) throw new Error('the vectors have one')
    const { record, cohort, one } = first
    const negatedDelta = one.blobs[0]?.negated_delta as Hex
    expect(firstNegatedDelta(record.layout, ceremony).equals(parseEip2537(negatedDelta))).toBe(true)
    const flipped = withCohort({ ...record, round: 1 }, cohort.index, { isFlipped: true })
    const learnt = { progress: new Progress(flipped.layout, flipped.blobs, Infinity) }
    expect(negatedDeltaStep(flipped, ceremony, learnt).state).toBe('holds')
    const another = vectors.generator as Hex
    const shown = record.shown.map((each) => ({ ...each, negatedDelta: another }))
    const said = {
      seedCommitment: record.decoys?.seedCommitment ?? '0x',
      negatedDeltaDigest: keccak256(another),
    }
    expect(negatedDeltaStep({ ...flipped, shown, decoys: said }, ceremony, learnt).state).toBe('fails')
  })

  test('a published blob of a sign-flipped sum is committed to again', async () => {
    const { record } = made
    const layout = record.layout
    const [seed] = ['0x05', '0x06', '0x07', '0x08', '0x09']
      .map((end) => concat([`0x${'00'.repeat(31)}`, end as Hex]))
      .filter((one) => isFlipped(one, 1, 1, 0))
    if (seed === undefined) throw new Error('one of five seeds should turn it')
    const survivors = [0, 2]
    const weight = 253n
    const offset = 2n ** 7n - 1n
    let ones = 0n
    for (let lane = 0; lane < 15; lane++) ones = (ones << 16n) | 1n
    const total = weighted(survivors, 0, WEIGHTS)
    const blob = blobOf(
      new Map(
        Array.from({ length: SCALARS - 2 }, (_, at) => [
          at,
          modulo(3n * weight * offset * ones - (total.get(at) ?? 0n)),
        ]),
      ),
    )
    const back = firstNegatedDelta(layout, ceremony).toAffine()
    const negatedDelta = concat([back.x, back.y].map((each) => numberToHex(each, { size: 64 })))
    const hash = versionedHash(commit(blob, ceremony))
    const cohort: Cohort = {
      index: 0,
      members: [0, 1, 2],
      survivors,
      expected: [hash],
      published: [hash],
      isDropped: false,
      isDisclosed: true,
      isFlipped: true,
    }
    const flipped = {
      ...record,
      blobs: 1,
      cohorts: [cohort],
      hasDecoys: true,
      decoys: { seedCommitment: seedCommitment(seed), negatedDeltaDigest: keccak256(negatedDelta) },
      shown: [
        {
          cohort: 0,
          blob: 0,
          seed,
          negatedDelta,
          first: total.get(4094) ?? 0n,
          second: total.get(4095) ?? 0n,
        },
      ],
    }
    const points = new Map(record.hospitals.map((_, index) => [index, pointsOf(record, index).slice(0, 1)]))
    const steps = await carriedOut(committedTo(flipped, points), () => ({ blob }))
    expect(states(steps)).toEqual({
      record: 'holds',
      ceremony: 'holds',
      decoys: 'holds',
      negatedDelta: 'holds',
      'sum-0': 'holds',
      'blob-0': 'holds',
    })
  })
})
