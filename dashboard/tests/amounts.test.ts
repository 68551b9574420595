import { describe, expect, it, test } from 'vitest'
import vectors from '../../tests/vectors/amounts.json'
import { numbersIn, TOKEN } from '../src/lib/amounts'

const {
  formatBps,
  formatBytes,
  formatEther,
  formatExactly,
  formatGwei,
  formatMillionths,
  formatScore,
  formatTokens,
  parseTokens,
} = numbersIn('en')

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

const LOCALES = ['en', 'de', 'fr', 'hi', 'es', 'ar-EG']

describe.each(LOCALES)('in the locale %s', (locale) => {
  const numbers = numbersIn(locale)

  it.each(vectors.tokens.filter(([amount = '']) => BigInt(amount) > 0n))(
    '%s, typed as shown, is itself',
    (amount = '') => {
      const shown = numbers.formatExactly(BigInt(amount))
      expect(shown).toMatch(/^[0-9.,’\s]+$/)
      expect(numbers.parseTokens(shown)).toBe(BigInt(amount))
      expect(numbers.parseTokens(shown.replace(/\s/g, ' '))).toBe(BigInt(amount))
    },
  )

  it('percentages typed as shown are themselves', () => {
    for (const bps of [0, 1, 50, 1_234, 10_000])
      expect(numbers.parsePercent(numbers.formatBps(bps).replace(' %', ''))).toBe(bps)
  })
})

test('marks are those of the locale, and no others', () => {
  const german = numbersIn('de')
  expect(german.formatTokens(1_234_567_890n * 10n ** 12n)).toBe('1.234,57')
  expect(german.formatEther(5n * 10n ** 17n)).toBe('0,500000')
  expect(german.formatMillionths(-12_345, true)).toBe('−1,23 %')
  expect(german.formatScore(545_866)).toBe('+0,5459')
  expect(german.formatBytes(1_500)).toBe('1,5 KiB')
  expect(german.parseTokens('1.234')).toBe(1234n * TOKEN)
  expect(german.parseTokens('1,234')).toBe(1234n * 10n ** 15n)
  for (const text of ['1.5', '1,234.5', '12.34,5', '1,2,3']) expect(german.parseTokens(text)).toBeNull()
  expect(numbersIn('es').parseTokens('1.234')).toBeNull() // Spanish groups from five digits on
})

test('a number without a value is shown as one', () => {
  expect(numbersIn('en').formatFixed(NaN, 2)).toBe('NaN')
  expect(numbersIn('en').formatFixed(-0.126, 2)).toBe('-0.13')
})
