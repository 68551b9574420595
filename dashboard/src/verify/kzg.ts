/**
 * KZG commitments to blobs (EIP-4844) over the ceremony's points. It is plain JavaScript, because the content security
 * policy forbids WebAssembly. A commitment takes about a second.
 */
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { pippenger } from '@noble/curves/abstract/curve.js'
import { bytesToHex, concat, hexToBytes, sha256, slice, type Hex } from 'viem'
import * as say from '../strings'

const G1 = bls12_381.G1.Point
export type Point = InstanceType<typeof G1>

export const ORDER = bls12_381.fields.Fr.ORDER
export const GENERATOR = G1.BASE
export const INFINITY = G1.ZERO

export const SCALARS = 4096
/** Scalars with lanes. The last two hold blinders. */
export const USABLE = SCALARS - 2
const SCALAR_LENGTH = 32
export const BLOB_LENGTH = SCALARS * SCALAR_LENGTH
const COORDINATE = 48
const COMPRESSED = 48
export const EIP2537_LENGTH = 128

/** The hash of `generated/ceremony.bin`. The maker of another setup could open a commitment to any value. */
const CEREMONY_SHA256 = '0xf39d3cb84a0b8e5dbba3601ad506e5a6fc89db22b361b59b10207768a82ba623'

export class CeremonyWrong extends Error {
  constructor() {
    super(say.verify.otherPoints)
    this.name = 'CeremonyWrong'
  }
}

/** A point that is not on the curve, is outside the subgroup, or has another encoding than the canonical one. */
export class PointMalformed extends Error {
  constructor(raw: Hex) {
    super(say.verify.notPoint(raw))
    this.name = 'PointMalformed'
  }
}

/** A blob of another length, or one whose scalar number `at` is not below the group's order. */
export class BlobMalformed extends Error {
  readonly bytes: number
  readonly at: number | null
  constructor(bytes: number, at: number | null) {
    super(at === null ? `a blob has ${BLOB_LENGTH} bytes, not ${bytes}` : `scalar ${at} is not below the group’s order`)
    this.name = 'BlobMalformed'
    this.bytes = bytes
    this.at = at
  }
}

/**
 * The 4096 Lagrange points in the order of a blob's scalars, from x and y of each, 48 bytes big-endian.
 * Curve and group need no check: the hash is pinned. Throws CeremonyWrong.
 */
export function parseCeremony(raw: Uint8Array): Point[] {
  if (raw.length !== SCALARS * 2 * COORDINATE || sha256(raw) !== CEREMONY_SHA256) throw new CeremonyWrong()
  return Array.from({ length: SCALARS }, (_, index) => {
    const start = index * 2 * COORDINATE
    return G1.fromAffine({
      x: integer(raw.subarray(start, start + COORDINATE)),
      y: integer(raw.subarray(start + COORDINATE, start + 2 * COORDINATE)),
    })
  })
}

/** A commitment of 48 bytes, compressed; the point at infinity counts as one. Throws PointMalformed. */
export function parsePoint(raw: Hex): Point {
  let point: Point
  try {
    point = G1.fromHex(raw.slice(2))
    point.assertValidity()
  } catch (error) {
    if (isInfinity(raw)) return INFINITY
    throw Object.assign(new PointMalformed(raw), { cause: error })
  }
  if (compressed(point) !== raw.toLowerCase()) throw new PointMalformed(raw)
  return point
}

function isInfinity(raw: Hex): boolean {
  return /^0xc0(00){47}$/i.test(raw)
}

/** EIP-2537's encoding: x and y, each padded to 64 bytes; infinity is all zeros. Throws PointMalformed. */
export function parseEip2537(raw: Hex): Point {
  const bytes = hexToBytes(raw)
  const [x, y] = [integer(bytes.subarray(0, 64)), integer(bytes.subarray(64))]
  if (bytes.length !== EIP2537_LENGTH) throw new PointMalformed(raw)
  if (x === 0n && y === 0n) return INFINITY
  try {
    const point = G1.fromAffine({ x, y })
    point.assertValidity()
    return point
  } catch (error) {
    throw Object.assign(new PointMalformed(raw), { cause: error })
  }
}

/** 48 bytes, ZCash's format. */
export function compressed(point: Point): Hex {
  return point.is0() ? (`0xc0${'00'.repeat(COMPRESSED - 1)}` as Hex) : bytesToHex(point.toBytes(true))
}

/** EIP-4844's kzg_to_versioned_hash. */
export function versionedHash(point: Point): Hex {
  return concat(['0x01', slice(sha256(compressed(point)), 1)])
}

/** Σ scalar · point; scalars are any integers. */
export function weightedSum(points: readonly Point[], scalars: readonly bigint[]): Point {
  if (points.length !== scalars.length) throw new RangeError('as many scalars as points are needed')
  return points.reduce((sum, point, at) => sum.add(point.multiplyUnsafe(modulo(scalars[at] ?? 0n))), INFINITY)
}

export function modulo(scalar: bigint): bigint {
  const rest = scalar % ORDER
  return rest < 0n ? rest + ORDER : rest
}

/** The 4096 scalars of a blob. Throws BlobMalformed. */
export function scalarsOf(blob: Uint8Array): bigint[] {
  if (blob.length !== BLOB_LENGTH) throw new BlobMalformed(blob.length, null)
  const view = new DataView(blob.buffer, blob.byteOffset, blob.length)
  return Array.from({ length: SCALARS }, (_, at) => {
    let scalar = 0n
    for (let word = 0; word < SCALAR_LENGTH; word += 8)
      scalar = (scalar << 64n) | view.getBigUint64(at * SCALAR_LENGTH + word)
    if (scalar >= ORDER) throw new BlobMalformed(blob.length, at)
    return scalar
  })
}

/**
 * The commitment to a blob, as EIP-4844's blob_to_kzg_commitment. Throws BlobMalformed.
 *
 * near: the scalar that most of the blob's scalars equal, except the last two. Equal ones cost nothing.
 */
export function commit(blob: Uint8Array, ceremony: readonly Point[], near = 0n): Point {
  return commitScalars(scalarsOf(blob), ceremony, near)
}

export function commitScalars(scalars: readonly bigint[], ceremony: readonly Point[], near = 0n): Point {
  const apart = scalars.map((scalar, at) => (at < USABLE ? modulo(scalar - near) : scalar))
  return sumOf(apart, ceremony).add(allOf(near, ceremony))
}

/** The commitment to a blob with one scalar throughout, except the last two, which are zero. */
export function allOf(scalar: bigint, ceremony: readonly Point[]): Point {
  const ones = weightedSum([GENERATOR, ...ceremony.slice(USABLE)], [1n, -1n, -1n]) // all ones commit to the generator
  return ones.multiplyUnsafe(modulo(scalar))
}

/** Σ scalar · point without zero terms, so that the empty part of small models costs nothing. */
function sumOf(scalars: readonly bigint[], ceremony: readonly Point[]): Point {
  const used = ceremony.filter((_, at) => (scalars[at] ?? 0n) !== 0n)
  return pippenger(
    G1,
    used,
    scalars.filter((scalar) => scalar !== 0n),
  )
}

/**
 * True if every commitment is its blob's, by one commitment to a random combination of them. A wrong one passes with a
 * probability of 2^-128 (small-exponent batch test; Bellare, Garay, Rabin 1998). Throws BlobMalformed.
 *
 * factors: uniform below 2^128, drawn after blobs and commitments are fixed.
 */
export function commitsTo(
  blobs: readonly Uint8Array[],
  commitments: readonly Point[],
  factors: readonly bigint[],
  ceremony: readonly Point[],
): boolean {
  const combined = new Array<bigint>(SCALARS).fill(0n)
  blobs.forEach((blob, index) => {
    const factor = factors[index] ?? 1n
    scalarsOf(blob).forEach((scalar, at) => (combined[at] = (combined[at] ?? 0n) + factor * scalar))
  })
  return sumOf(combined.map(modulo), ceremony).equals(weightedSum(commitments, factors))
}

function integer(bytes: Uint8Array): bigint {
  return bytes.length === 0 ? 0n : BigInt(bytesToHex(bytes))
}
