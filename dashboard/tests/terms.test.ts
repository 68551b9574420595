import { decodeFunctionData, encodeFunctionData } from 'viem'
import { describe, expect, it } from 'vitest'
import type { Schemas } from '../src/api/client'
import { tasksAbi } from '../src/generated/abi'
import { roomInPool, roundPay } from '../src/lib/funding'
import { taskParams } from '../src/lib/terms'

// Every number another one, so that none can stand for its neighbour.
const TERMS: Schemas['Terms'] = {
  digests: true,
  decoys: false,
  masked: true,
  update_bits: 16,
  lane_bits: 26,
  pool: '100000000000000000000001',
  hospital_bond: '500000000000000000000',
  voter_bond: '200000000000000000000',
  aggregator_bond: '4000000000000000000000',
  tick_bounty: '7',
  rounds: 10,
  cohorts: 2,
  min_cohort_size: 3,
  min_hospitals: 6,
  max_hospitals: 8,
  min_voters: 1,
  max_voters: 9,
  seats: 5,
  min_reveals: 4,
  statistics_blobs: 11,
  update_blobs: 12,
  shards: 1,
  rows_per_weight: 13,
  max_weight: 64,
  accept_floor: -10000,
  harmful_below: -50000,
  tolerance_abs: 50001,
  tolerance_bps: 3000,
  decoy_margin: 50002,
  hospital_share_bps: 7000,
  voter_share_bps: 2000,
  aggregator_share_bps: 1000,
  rank_decay_bps: 0,
  rank_floor: 0,
  harmful_slash_bps: 2001,
  withheld_slash_bps: 201,
  not_revealed_slash_bps: 1001,
  failed_decoy_slash_bps: 5001,
  not_published_slash_bps: 5000,
  join_window: 86400,
  commit_window: 3600,
  upload_window: 900,
  publish_window: 301,
  score_window: 1800,
  reveal_window: 600,
}
const HASH = `0x${'1f'.repeat(32)}` as const
const AGGREGATOR = '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

describe('terms as the contract takes them', () => {
  const params = taskParams(TERMS, HASH, AGGREGATOR)
  const [propose] = tasksAbi.filter((one) => one.type === 'function' && one.name === 'propose')
  const fields = propose?.inputs[0]?.components.map(({ name }) => name) ?? []

  it('has every field of the contract’s, and no other', () => {
    expect(fields).toHaveLength(47)
    expect(Object.keys(params).toSorted()).toEqual(fields.toSorted())
    expect(Object.keys(TERMS).toSorted()).toEqual(
      fields
        .filter((name) => name !== 'specHash' && name !== 'aggregator')
        .map(snake)
        .toSorted(),
    )
  })

  it('has each value in its own place', () => {
    const by = new Map(Object.entries(params).map(([name, value]) => [snake(name), String(value)]))
    for (const [name, value] of Object.entries(TERMS)) expect([name, by.get(name)]).toEqual([name, String(value)])
    expect(by.get('spec_hash')).toBe(HASH)
    expect(by.get('aggregator')).toBe(AGGREGATOR)
  })

  it('needs each of them', () => {
    const rest = Object.fromEntries(Object.entries(TERMS).filter(([name]) => name !== 'seats')) as typeof TERMS
    expect(() => taskParams(rest, HASH, AGGREGATOR)).toThrow('the terms have no seats')
  })

  it('is what is encoded', () => {
    const data = encodeFunctionData({ abi: tasksAbi, functionName: 'propose', args: [params] })
    expect(decodeFunctionData({ abi: tasksAbi, data }).args).toEqual([params])
  })
})

describe('a pool that grows', () => {
  const terms = { ...TERMS, pool: '100000000000000000000000' }

  it('pays each round an even part', () => {
    expect(roundPay(terms, 100_000n * 10n ** 18n)).toEqual({
      hospital: 7_000n * 10n ** 18n,
      voter: 2_000n * 10n ** 18n,
      aggregator: 1_000n * 10n ** 18n,
    })
  })

  it('has room while half of a slash outweighs the fee, and not one unit more', () => {
    for (const [share, rounds, bond] of [
      [1000, 10, '4000000000000000000000'],
      [1, 3, '1333'],
      [3333, 7, '99999'],
    ] as const) {
      const of = { ...terms, pool: '1', aggregator_share_bps: share, rounds, aggregator_bond: bond }
      const slash = (BigInt(bond) * BigInt(of.not_published_slash_bps)) / 10_000n
      const most = 1n + (roomInPool(of) ?? 0n)
      expect(2n * roundPay(of, most).aggregator).toBeLessThanOrEqual(slash)
      expect(2n * roundPay(of, most + 1n).aggregator).toBeGreaterThan(slash)
    }
  })

  it('has no limit where rounds pay the aggregator nothing', () => {
    expect(roomInPool({ ...terms, aggregator_share_bps: 0 })).toBeNull()
  })
})
