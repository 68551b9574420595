/** Numbers as people of a locale read and type them. Amounts of tokens are bigint of the smallest unit: 10^18 are one
 * token. Only text for people has a decimal mark.
 */

import { LOCALE } from './language'

export const DECIMALS = 18
export const TOKEN = 10n ** BigInt(DECIMALS)

const LARGER = ['KiB', 'MiB', 'GiB'] as const
const GWEI = 10n ** 9n
const MICROETHER = 10n ** 12n

/** The formats of a locale. Digits are Latin, as in addresses and hashes beside them. */
export function numbersIn(locale: string) {
  const whole = new Intl.NumberFormat(locale, { numberingSystem: 'latn' })
  const parts = new Intl.NumberFormat(locale, { numberingSystem: 'latn', useGrouping: true }).formatToParts(1234567.5)
  const mark = (type: Intl.NumberFormatPartTypes) => parts.find((part) => part.type === type)?.value ?? ''
  const [point, group] = [mark('decimal'), mark('group')]

  const joined = (sign: string, units: bigint, rest: string) => `${sign}${whole.format(units)}${rest && point + rest}`

  /** A number with this many digits after the mark, rounded as `toFixed` and as the command line. */
  const fixed = (value: number, digits: number): string => {
    if (!(Math.abs(value) < 1e21)) return String(value) // from there on `toFixed` gives an exponent
    const [units = '', rest = ''] = Math.abs(value).toFixed(digits).split('.')
    return joined(value < 0 ? '-' : '', BigInt(units), rest)
  }

  /** A number with at most this many digits after the mark. */
  const upTo = (digits: number) => {
    const format = new Intl.NumberFormat(locale, { numberingSystem: 'latn', maximumFractionDigits: digits })
    return (value: number) => format.format(value)
  }
  const [toTenths, toHundredths, toThousandths] = [upTo(1), upTo(2), upTo(3)]
  const inBytes = new Intl.NumberFormat(locale, {
    numberingSystem: 'latn',
    maximumFractionDigits: 0,
    style: 'unit',
    unit: 'byte',
    unitDisplay: 'long',
  })

  const toDigits = (digits: number) => {
    const format = new Intl.NumberFormat(locale, { numberingSystem: 'latn', maximumSignificantDigits: digits })
    return (value: number) => format.format(value)
  }
  const bound = new Intl.NumberFormat(locale, {
    numberingSystem: 'latn',
    maximumFractionDigits: 9,
    useGrouping: false,
  })

  /** Digits and a point, from a text with the locale's marks; null if it is something else. */
  const plain = (text: string): string | null => {
    const spaced = /\s/.test(group) ? text.trim().replace(/\s/g, group) : text.trim()
    const [units = '', rest, ...more] = spaced.split(point)
    const digits = group === '' ? units : units.replaceAll(group, '')
    if (!/^\d+$/.test(digits) || more.length > 0 || (rest !== undefined && !/^\d+$/.test(rest))) return null
    if (units !== digits && units !== whole.format(BigInt(digits))) return null
    return rest === undefined ? digits : `${digits}.${rest}`
  }

  return {
    /** Separates a fraction of a token. */
    point,
    formatFixed: fixed,
    formatSignificant: toDigits(3),
    formatPrecise: toDigits(4),
    formatWhole: (value: number | bigint) => whole.format(value),
    /** Without groups: a task file's number has none, and "10.000" would be ten there. */
    formatBound: (value: number) => bound.format(value),

    /** An amount in tokens with two digits, halves rounded away from zero, as the command line rounds. */
    formatTokens: (amount: bigint): string => {
      const [sign, size] = signOf(amount)
      const hundredths = (size * 100n + TOKEN / 2n) / TOKEN
      return joined(sign, hundredths / 100n, String(hundredths % 100n).padStart(2, '0'))
    },

    /** An amount in tokens with all its digits. */
    formatExactly: (amount: bigint): string => {
      const [sign, size] = signOf(amount)
      const rest = String(size % TOKEN).padStart(DECIMALS, '0')
      return joined(sign, size / TOKEN, rest.replace(/0+$/, ''))
    },

    /** The exact amount of a typed text; null if it is not positive, or finer than the smallest unit. */
    parseTokens: (text: string): bigint | null => {
      const [units = '', part = ''] = plain(text)?.split('.') ?? []
      if (units === '' || part.length > DECIMALS) return null
      const amount = BigInt(units) * TOKEN + BigInt(part.padEnd(DECIMALS, '0'))
      return amount > 0n ? amount : null
    },

    /** Basis points as per cent: 1250 is 12.5 %. */
    formatBps: (bps: number) => `${toHundredths(bps / 100)} %`,

    /** The basis points of a typed percentage; null if it is not from 0 to 100, or finer than a basis point. */
    parsePercent: (text: string): number | null => {
      const match = /^(\d{1,3})(?:\.(\d{1,2}))?$/.exec(plain(text) ?? '')
      if (!match) return null
      const bps = Number(match[1]) * 100 + Number((match[2] ?? '').padEnd(2, '0'))
      return bps <= 10_000 ? bps : null
    },

    /** Millionths as per cent with two digits; positive ones with a sign if `signed`. */
    formatMillionths: (millionths: number, signed = false): string => {
      const sign = millionths < 0 ? '−' : signed && millionths > 0 ? '+' : ''
      return `${sign}${fixed(Math.abs(millionths) / 10_000, 2)} %`
    },

    /** A share from 0 to 1 as per cent with one digit: 0.9649 is 96.5 %. */
    formatShare: (share: number) => `${fixed(100 * share, 1)} %`,

    /** A score in millionths as a number of its metric. */
    formatScore: (millionths: number): string => {
      const sign = millionths < 0 ? '−' : millionths > 0 ? '+' : ''
      return sign + fixed(Math.abs(millionths) / 1_000_000, 4)
    },

    /** The same without its sign. */
    formatSize: (millionths: number) => fixed(Math.abs(millionths) / 1_000_000, 4),

    /** A size, rounded to a tenth of its unit. */
    formatBytes: (bytes: number): string => {
      if (bytes < 1024) return inBytes.format(bytes)
      const at = Math.min(Math.floor(Math.log2(bytes) / 10), LARGER.length)
      return `${toTenths(bytes / 1024 ** at)} ${LARGER[at - 1] ?? ''}`
    },

    /** Ether for an amount of wei, rounded up to a millionth. */
    formatEther: (wei: bigint): string => {
      const rounded = (wei + MICROETHER - 1n) / MICROETHER
      return joined('', rounded / 1_000_000n, String(rounded % 1_000_000n).padStart(6, '0'))
    },

    /** Gwei for an amount of wei, rounded to a thousandth, halves up. */
    formatGwei: (wei: bigint) => toThousandths(Number((wei * 1000n + GWEI / 2n) / GWEI) / 1000),
  }
}

/** A part of a whole in basis points, rounded up; 0 of nothing. */
export function bpsOf(part: bigint, whole: bigint): number {
  return whole > 0n ? Number((part * 10_000n + whole - 1n) / whole) : 0
}

function signOf(amount: bigint): [string, bigint] {
  return amount < 0n ? ['-', -amount] : ['', amount]
}

export const {
  point,
  formatFixed,
  formatSignificant,
  formatPrecise,
  formatWhole,
  formatBound,
  formatTokens,
  formatExactly,
  parseTokens,
  formatBps,
  parsePercent,
  formatMillionths,
  formatShare,
  formatScore,
  formatSize,
  formatBytes,
  formatEther,
  formatGwei,
} = numbersIn(LOCALE)
