import { describe, expect, it, test } from 'vitest'
import vectors from '../../tests/vectors/amounts.json'
import {
  formatBps,
  formatBytes,
  formatEther,
  formatExactly,
  formatGwei,
  formatMillionths,
  formatScore,
  formatTokens,
  parseTokens,
  TOKEN,
} from '../src/lib/amounts'

describe('amounts, by the vectors that the command line is held to', () => {
  it.each(vectors.tokens)('%s', (amount = '', shown = '', exact = '') => {
    expect(formatTokens(BigInt(amount))).toBe(shown)
    expect(formatExactly(BigInt(amount))).toBe(exact)
  })

  it.each(vectors.tokens.filter(([amount = '']) => BigInt(amount) > 0n))(
    '%s, typed exactly, is itself',
    (amount = '', _, exact = '') => {
      expect(parseTokens(exact)).toBe(BigInt(amount))
      expect(parseTokens(exact.replaceAll(',', ''))).toBe(BigInt(amount))
    },
  )
})

test.each(['', '0', '0.0', '-1', '1e3', '1.', '.5', '1,23', '12,34.5', '1 000', '0x10', '0.0000000000000000001', '٣'])(
  'no amount is made of %j',
  (text) => expect(parseTokens(text)).toBeNull(),
)

test('an amount has no float in between', () => {
  expect(parseTokens('9007199254740993.000000000000000001')).toBe(9007199254740993n * TOKEN + 1n)
})

test('shares and scores', () => {
  expect(formatBps(1250)).toBe('12.5 %')
  expect(formatMillionths(-12_345, true)).toBe('−1.23 %')
  expect(formatMillionths(12_345, true)).toBe('+1.23 %')
  expect(formatMillionths(0, true)).toBe('0.00 %')
  expect(formatScore(545_866)).toBe('+0.5459')
  expect(formatScore(-1)).toBe('−0.0000')
})

test.each([
  [0, '0 bytes'],
  [1023, '1,023 bytes'],
  [1024, '1 KiB'],
  [1_500, '1.5 KiB'],
  [5 * 1024 ** 2, '5 MiB'],
  [3 * 1024 ** 4, '3,072 GiB'],
])('%d bytes are %s', (bytes, words) => expect(formatBytes(bytes)).toBe(words))

test('ether and gwei', () => {
  expect(formatEther(0n)).toBe('0.000000')
  expect(formatEther(1n)).toBe('0.000001')
  expect(formatEther(1234n * 10n ** 18n + 5n * 10n ** 17n)).toBe('1,234.500000')
  expect(formatGwei(1_500_000_000n)).toBe('1.5')
  expect(formatGwei(499_999n)).toBe('0')
  expect(formatGwei(500_000n)).toBe('0.001')
})
