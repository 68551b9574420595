import { describe, expect, test } from 'vitest'
import { chosenOf, MOST_COMPARED } from '../src/lib/compared'
import { bpsOf } from '../src/lib/amounts'
import { amountsOf } from '../src/lib/series'
import { earnedOf, whatIf } from '../src/lib/whatif'

const AMOUNTS = [0n, 1n, 7n, 10n ** 18n, 3n * 10n ** 24n + 1n]
const RATES = [-1_000_000, -333_333, -1, 0, 1, 99_999, 1_000_000, 12_345_678]
const account = (n: number) => `0x${String(n).padStart(40, '0')}`

describe('money', () => {
  test('that would be earned is rounded down, and a loss never looks smaller', () => {
    for (const amount of AMOUNTS)
      for (const rate of RATES) {
        const found = earnedOf(amount, rate)
        const exact = amount * BigInt(rate)
        expect(found * 1_000_000n <= exact && exact < (found + 1n) * 1_000_000n).toBe(true)
      }
  })
  test('at risk is never more than all of it', () => {
    for (const amount of AMOUNTS)
      for (const locked of AMOUNTS) {
        const { atRisk, part } = whatIf(amount, { active: 5n, locked, assets: locked + 5n })
        expect(atRisk <= amount && part <= 1_000_000).toBe(true)
      }
  })
  test('as a part of a whole is rounded up', () => {
    expect([bpsOf(0n, 3n), bpsOf(1n, 3n), bpsOf(1n, 10n ** 30n), bpsOf(3n, 3n), bpsOf(3n, 0n)]).toEqual([
      0, 3_334, 1, 10_000, 0,
    ])
  })
  test('of a chart keeps millionths of a token', () => {
    expect(amountsOf([{ assets: '1999999999999' }, { assets: String(10n ** 27n) }], 'assets')).toEqual([1, 1e15])
  })
})

test('an address names four nodes at most, each once, and nothing else', () => {
  const many = [1, 2, 1, 3, 4, 5].map(account)
  expect(chosenOf(many.join())).toEqual([1, 2, 3, 4].map(account))
  expect(chosenOf(many.join())).toHaveLength(MOST_COMPARED)
  expect(chosenOf(`<script>,0x12,,${account(9)},${'0'.repeat(10_000)}`)).toEqual([account(9)])
  expect(chosenOf('0xABcd' + '0'.repeat(36) + ',0xabcd' + '0'.repeat(36))).toHaveLength(1)
  expect(chosenOf(null)).toEqual([])
})
