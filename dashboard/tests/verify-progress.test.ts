import { keccak256, numberToBytes, slice, type Hex } from 'viem'
import { describe, expect, it } from 'vitest'
import vectors from '../../tests/vectors/progress.json'
import { Progress, seedCommitment } from '../src/verify/decoys'
import type { Fetched, Step } from '../src/verify/core'
import { BLOB_LENGTH, commit, EIP2537_LENGTH, parseEip2537, USABLE, versionedHash } from '../src/verify/kzg'
import type { Cohort, RoundRecord } from '../src/verify/record'
import { verify } from '../src/verify/run'
import { ceremony } from './verify-ceremony'
import { committedTo } from './verify-points'

type Case = (typeof vectors.cases)[number]
type Sum = Case['rounds'][number][number]

const SEED: Hex = `0x${'5e'.repeat(32)}`
const NODE: Hex = `0x${'11'.repeat(20)}`

const layoutOf = (one: Case) => ({ updateBits: one.bits, laneBits: one.lane_bits })

/** All blobs' scalars, the lanes that are not drawn being what updates of zero leave. */
function scalarsOf(one: Case, sum: Sum, changed: readonly bigint[] = []): bigint[] {
  const perScalar = Math.floor(252 / one.lane_bits)
  const lane = (at: number) => changed[at] ?? BigInt(sum.lanes[at] ?? sum.empty)
  return Array.from({ length: one.blobs * USABLE }, (_, scalar) => {
    let found = 0n
    for (let place = perScalar - 1; place >= 0; place--)
      found = (found << BigInt(one.lane_bits)) | lane(scalar * perScalar + place)
    return found
  })
}

function blobsOf(one: Case, sum: Sum): Uint8Array[] {
  const scalars = scalarsOf(one, sum)
  return Array.from({ length: one.blobs }, (_, blob) => {
    const raw = new Uint8Array(BLOB_LENGTH)
    scalars
      .slice(blob * USABLE, (blob + 1) * USABLE)
      .forEach((scalar, at) => raw.set(numberToBytes(scalar, { size: 32 }), at * 32))
    return raw
  })
}

function progressOf(one: Case, parameters = one.parameters): Progress {
  const progress = new Progress(layoutOf(one), one.blobs, parameters)
  for (const sums of one.rounds)
    progress.add(
      sums.map((sum) => ({
        weight: BigInt(sum.weight),
        isFlipped: sum.flipped,
        scalars: scalarsOf(one, sum),
      })),
    )
  return progress
}

function isNegatedDelta(one: Case, progress: Progress): boolean {
  return progress
    .negatedDelta(ceremony)
    .every((point, blob) =>
      point.equals(parseEip2537(slice(one.negated_delta as Hex, blob * EIP2537_LENGTH, (blob + 1) * EIP2537_LENGTH))),
    )
}

describe.each(vectors.cases)('$name: what decoys take back', (one) => {
  it('follows from the sums before, by the vectors', () => {
    const progress = progressOf(one)
    expect(isNegatedDelta(one, progress)).toBe(true)
    expect(progress.isBeyondModel).toBe(false)
    expect(isNegatedDelta(one, progressOf(one, Infinity))).toBe(true)
  })

  it('is another one with a sum read the other way, or left out', () => {
    const [first = [], ...rest] = one.rounds
    const [sum, ...others] = first
    if (!sum) throw new Error('the vectors have one')
    expect(isNegatedDelta(one, progressOf({ ...one, rounds: rest }))).toBe(false)
    expect(
      isNegatedDelta(one, progressOf({ ...one, rounds: [[{ ...sum, flipped: !sum.flipped }, ...others], ...rest] })),
    ).toBe(false)
  })

  it('leaves out lanes beyond the model, and says that they were used', () => {
    const progress = progressOf(one, one.parameters - 20)
    expect(progress.isBeyondModel).toBe(true)
    expect(isNegatedDelta(one, progress)).toBe(false)
  })
})

it('leaves out a sum that has a lane out of range', () => {
  const [one] = vectors.cases
  const sum = one?.rounds[0]?.[0]
  if (!one || !sum) throw new Error('the vectors have one')
  const alone = (changed: readonly bigint[]) => {
    const progress = new Progress(layoutOf(one), one.blobs, one.parameters)
    progress.add([{ weight: BigInt(sum.weight), isFlipped: sum.flipped, scalars: scalarsOf(one, sum, changed) }])
    return progress.negatedDelta(ceremony)[0]
  }
  const nothing = new Progress(layoutOf(one), one.blobs, one.parameters).negatedDelta(ceremony)[0]
  if (!nothing) throw new Error('there is a blob')
  expect(alone([])?.equals(nothing)).toBe(false)
  expect(alone([2n * BigInt(sum.empty) + 1n])?.equals(nothing)).toBe(true)
})

/** A round after those of the vectors, of which one sign-flipped sum was disclosed, with nothing in it. */
function laterRound(one: Case): { record: RoundRecord; store: Map<Hex, Uint8Array> } {
  const store = new Map<Hex, Uint8Array>()
  const before = one.rounds.map((sums, index) => ({
    round: index + 1,
    cohorts: sums.map((sum, cohort) => ({
      cohort,
      weight: sum.weight,
      isFlipped: sum.flipped,
      hashes: blobsOf(one, sum).map((raw) => {
        const hash = versionedHash(commit(raw, ceremony))
        store.set(hash, raw)
        return hash
      }),
    })),
  }))
  const cohort: Cohort = {
    index: 0,
    members: [0],
    survivors: [],
    expected: [],
    published: [],
    isDropped: true,
    isDisclosed: true,
    isFlipped: true,
  }
  const negatedDelta = one.negated_delta as Hex
  const record = {
    chainId: 1,
    contract: NODE,
    task: 1,
    round: one.rounds.length + 1,
    outcome: 'settled' as const,
    blobs: one.blobs,
    layout: layoutOf(one),
    hospitals: [{ node: NODE, weight: 1 }],
    committed: [0],
    isFixed: true,
    cohorts: [cohort, { ...cohort, index: 1, isDropped: false, isDisclosed: false, isFlipped: false, survivors: [0] }],
    hasDecoys: true,
    decoys: { seedCommitment: seedCommitment(SEED), negatedDeltaDigest: keccak256(negatedDelta) },
    shown: [{ cohort: 0, blob: 0, seed: SEED, negatedDelta, first: 0n, second: 0n }],
    openingBlocks: null,
    before,
    events: 1,
    block: 1n,
  }
  return {
    record: committedTo(record, new Map([[0, Array<Hex>(one.blobs).fill(EMPTY)]])),
    store,
  }
}

const EMPTY: Hex = `0xc0${'00'.repeat(47)}`

async function negatedDeltaStepOf(
  record: RoundRecord,
  blob: (hash: Hex) => Fetched,
  coordinates: number | null = null,
): Promise<Step | undefined> {
  let found: Step | undefined
  const source = {
    ceremony: () => Promise.resolve(ceremony),
    blob: (hash: Hex) => Promise.resolve(blob(hash)),
    coordinates,
    random: () => 1n,
  }
  for await (const step of verify(record, source)) if (step.key === 'negatedDelta') found = step
  return found
}

describe('a later round', () => {
  const [one] = vectors.cases
  if (!one) throw new Error('the vectors have one')
  const { record, store } = laterRound(one)
  const from = (hash: Hex): Fetched => {
    const blob = store.get(hash)
    return blob ? { blob } : { missing: true }
  }

  it('takes back what the rounds before taught', async () => {
    expect(await negatedDeltaStepOf(record, from)).toMatchObject({ state: 'holds' })
    expect(await negatedDeltaStepOf(record, from, one.parameters)).toMatchObject({ state: 'holds' })
  })

  it('fails where it takes back something else', async () => {
    const before = record.before?.slice(1) ?? []
    expect(await negatedDeltaStepOf({ ...record, before }, from)).toMatchObject({ state: 'fails' })
  })

  it('fails with another’s blob under an earlier hash', async () => {
    const other = [...store.values()].at(-1) ?? new Uint8Array()
    const first = record.before?.[0]?.cohorts[0]?.hashes[0]
    const step = await negatedDeltaStepOf(record, (hash) => (hash === first ? { blob: other } : from(hash)))
    expect(step?.state).toBe('fails')
    expect(step?.lines[0]).toMatch(/^Round 1, cohort 0: Blob 0/)
  })

  it.each<[string, Partial<RoundRecord>, () => Fetched]>([
    ['nobody has an earlier blob', {}, () => ({ missing: true })],
    ['the mirror is silent', {}, () => ({ unreachable: '503' })],
    ['the rounds before are too many', { before: null }, () => ({ missing: true })],
  ])('is not checked where %s', async (_, changed, blob) => {
    expect(await negatedDeltaStepOf({ ...record, ...changed }, blob)).toMatchObject({ state: 'skipped' })
  })

  it('does not hold on the server’s word for how many parameters there are', async () => {
    const step = await negatedDeltaStepOf(record, from, one.parameters - 20)
    expect(step?.state).toBe('fails')
  })
})
