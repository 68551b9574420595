import { expect, test } from 'vitest'
import { byMonth } from '../src/lib/series'
import { vestingOf } from '../src/lib/whatif'

const unvestedX48 = 1_000n << 48n

const NOW = 1_790_000_000 // seconds

test('what vests is shared as the contract shares it: commission first, then by the shares that earn', () => {
  const pool = { unvestedX48, commissionBps: 1_000, shares: 500n, unbondingShares: 100n, vestingEnd: NOW + 1 }
  expect(vestingOf(pool, 100n, false, NOW)).toBe(225n)
  expect(vestingOf(pool, 100n, true, NOW)).toBe(325n)
  expect(vestingOf(pool, 300n, false, NOW) + vestingOf(pool, 100n, true, NOW)).toBe(1_000n)
})

test('without shares that earn, the owner gets all', () => {
  const pool = { unvestedX48, commissionBps: 0, shares: 100n, unbondingShares: 100n, vestingEnd: NOW + 1 }
  expect(vestingOf(pool, 0n, true, NOW)).toBe(1_000n)
  expect(vestingOf(pool, 0n, false, NOW)).toBe(0n)
})

test('after the end of the vesting nothing vests, whatever fraction is left', () => {
  const pool = { unvestedX48, commissionBps: 0, shares: 100n, unbondingShares: 0n, vestingEnd: NOW }
  expect(vestingOf(pool, 100n, true, NOW)).toBe(0n)
  expect(vestingOf(pool, 100n, true, NOW - 1)).toBe(1_000n)
})

test('months are those of UTC, the latest first, and add up', () => {
  const at = (text: string) => Date.parse(text) / 1000
  const found = byMonth([
    { time: at('2026-12-31T23:59:59Z'), amount: 1n },
    { time: at('2027-01-01T00:00:00Z'), amount: 2n },
    { time: at('2026-12-01T00:00:00Z'), amount: 4n },
  ])
  expect(found).toEqual([
    { month: '2027-01', amount: 2n },
    { month: '2026-12', amount: 5n },
  ])
  expect(byMonth([])).toEqual([])
})
