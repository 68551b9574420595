import { bytesToHex, concat, hexToBytes, numberToBytes, sha256, slice, type Address, type Hex } from 'viem'
import { describe, expect, it, test } from 'vitest'
import decoys from '../../tests/vectors/decoys.json'
import blobs from '../../tests/vectors/kzg/blob_to_kzg_commitment.json'
import vectors from '../../tests/vectors/protocol.json'
import { pointHash } from '../src/verify/core'
import {
  BLOB_LENGTH,
  BlobMalformed,
  CeremonyWrong,
  commit,
  commitsTo,
  compressed,
  GENERATOR,
  INFINITY,
  ORDER,
  parseCeremony,
  parseEip2537,
  parsePoint,
  PointMalformed,
  SCALARS,
  versionedHash,
  weightedSum,
} from '../src/verify/kzg'
import { ceremony, RAW } from './verify-ceremony'

describe('blob_to_kzg_commitment of the consensus specification', () => {
  it.each(blobs.cases)('$name', (one) => {
    const other = new Map(one.other as [number, string][])
    const scalars = [BigInt(one.first)]
    const ratio = BigInt(one.ratio)
    for (const scalar of scalars)
      if (scalars.length < SCALARS) scalars.push(ratio === 1n ? scalar : (scalar * ratio) % ORDER)
    const whole = concat(scalars.map((scalar, at) => numberToBytes(BigInt(other.get(at) ?? scalar), { size: 32 })))
    const blob = new Uint8Array(one.bytes)
    blob.set(whole.subarray(0, one.bytes))
    expect(sha256(blob)).toBe(one.sha256)
    if (one.output === null) expect(() => commit(blob, ceremony)).toThrow(BlobMalformed)
    else expect(compressed(commit(blob, ceremony))).toBe(one.output)
  })
})

test('a setup with one bit flipped, or too short, is refused', () => {
  const other = RAW.slice()
  other[200_000] = (other[200_000] ?? 0) ^ 1
  expect(() => parseCeremony(other)).toThrow(CeremonyWrong)
  expect(() => parseCeremony(RAW.subarray(96))).toThrow(CeremonyWrong)
})

test('the last two points are those that the contract knows', () => {
  expect(ceremony.slice(-2).map(compressed)).toEqual(
    decoys.blinder_points.map(({ point }) => compressed(parseEip2537(point as Hex))),
  )
  expect(parseEip2537(decoys.generator as Hex).equals(GENERATOR)).toBe(true)
})

test('many blobs are checked by one combination, and one wrong one is found', () => {
  const made = [3n, 5n, 7n].map((value, index) =>
    sparse([
      [index, value],
      [4095, value * value],
    ]),
  )
  const points = made.map((blob) => commit(blob, ceremony))
  const factors = [2n ** 127n + 1n, 12345n, 99n]
  expect(commitsTo(made, points, factors, ceremony)).toBe(true)
  expect(commitsTo(made, [...points.slice(0, 2), GENERATOR], factors, ceremony)).toBe(false)
  expect(commitsTo([...made.slice(1), ...made.slice(0, 1)], points, factors, ceremony)).toBe(false)
})

describe('weighted sums, by the vectors of py_ecc', () => {
  const points = vectors.committed.map(({ commitments }) => parsePoint(commitments as Hex))
  it.each([vectors.weighted_sum, vectors.unweighted_sum])('$versioned_hash', (sum) => {
    const found = weightedSum(points, sum.weights.map(BigInt))
    expect(compressed(found)).toBe(sum.commitment)
    expect(versionedHash(found)).toBe(sum.versioned_hash)
  })
  it('are another with a point or a weight changed', () => {
    const weights = vectors.weighted_sum.weights.map(BigInt)
    const hash = (changed: bigint[], of = points) => versionedHash(weightedSum(of, changed))
    const right = vectors.weighted_sum.versioned_hash
    weights.forEach((weight, at) => expect(hash(weights.with(at, weight + 1n))).not.toBe(right))
    points.forEach((_, at) => expect(hash(weights, points.with(at, GENERATOR))).not.toBe(right))
    expect(hash(weights.slice(1), points.slice(1))).not.toBe(right)
  })
})

test('hashes of points, by the vectors of eth_abi', () => {
  const place = {
    chainId: vectors.chain_id,
    contract: vectors.tasks as Address,
    task: vectors.task,
    round: vectors.round,
  }
  const made = [...vectors.committed, vectors.committed_three]
  const hashes = made.map(({ hospital, commitments, point_hashes }) =>
    point_hashes.map((_, blob) =>
      pointHash(place, hospital as Address, blob, slice(commitments as Hex, blob * 48, (blob + 1) * 48)),
    ),
  )
  expect(hashes).toEqual(made.map(({ point_hashes }) => point_hashes))
})

describe('points', () => {
  it.each(vectors.compressions)('$compressed', ({ point, compressed: raw }) => {
    expect(compressed(parseEip2537(point as Hex))).toBe(raw)
    expect(parsePoint(raw as Hex).equals(parseEip2537(point as Hex))).toBe(true)
  })

  it('are refused outside the group, off the curve, and in another encoding', () => {
    const good = vectors.committed[0]?.commitments as Hex
    const bytes = hexToBytes(good)
    const flipped = (at: number, bit: number) => {
      const copy = bytes.slice()
      copy[at] = (copy[at] ?? 0) ^ bit
      return bytesToHex(copy)
    }
    expect(() => parsePoint(vectors.outside_g1.compressed as Hex)).toThrow(PointMalformed)
    expect(() => parseEip2537(vectors.outside_g1.point as Hex)).toThrow(PointMalformed)
    expect(() => parsePoint(flipped(0, 0x80))).toThrow(PointMalformed) // says it is not compressed
    expect(() => parsePoint(flipped(0, 0x40))).toThrow(PointMalformed) // infinity, with something behind it
    expect(() => parsePoint(slice(good, 0, 47))).toThrow(PointMalformed)
    expect(() => parsePoint('0x')).toThrow(PointMalformed)
    const point = decoys.generator as Hex
    expect(() => parseEip2537(`0x01${point.slice(4)}`)).toThrow(PointMalformed) // padding
    expect(() => parseEip2537(`${point.slice(0, -2)}00` as Hex)).toThrow(PointMalformed)
    expect(() => parseEip2537(slice(point, 0, 96))).toThrow(PointMalformed)
    for (let bit = 1; bit < 128; bit *= 2) {
      const other = flipped(47, bit)
      let found: Hex | undefined
      try {
        found = compressed(parsePoint(other))
      } catch (error) {
        expect(error).toBeInstanceOf(PointMalformed)
      }
      expect(found).not.toBe(good)
    }
  })

  it('may be infinity, in its one encoding', () => {
    const raw = `0xc0${'00'.repeat(47)}` as Hex
    expect(parsePoint(raw).equals(INFINITY)).toBe(true)
    expect(compressed(INFINITY)).toBe(raw)
    expect(parseEip2537(`0x${'00'.repeat(128)}`).equals(INFINITY)).toBe(true)
    expect(() => parsePoint(`0xe0${'00'.repeat(47)}`)).toThrow(PointMalformed)
  })
})

function sparse(scalars: [number, bigint][]): Uint8Array {
  const blob = new Uint8Array(BLOB_LENGTH)
  for (const [at, scalar] of scalars) blob.set(numberToBytes(scalar, { size: 32 }), at * 32)
  return blob
}
