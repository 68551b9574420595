/** Amounts of tokens, as bigint of the smallest unit: 10^18 are one token. Only text for people has a point. */

export const DECIMALS = 18
export const TOKEN = 10n ** BigInt(DECIMALS)

const grouped = new Intl.NumberFormat('en')

/** An amount in tokens with two digits, halves rounded away from zero, as the command line shows it. */
export function formatTokens(amount: bigint): string {
  const sign = amount < 0n ? '-' : ''
  const size = amount < 0n ? -amount : amount
  const hundredths = (size * 100n + TOKEN / 2n) / TOKEN
  return `${sign}${grouped.format(hundredths / 100n)}.${String(hundredths % 100n).padStart(2, '0')}`
}

/** An amount in tokens with all its digits. */
export function formatExactly(amount: bigint): string {
  const sign = amount < 0n ? '-' : ''
  const size = amount < 0n ? -amount : amount
  const rest = String(size % TOKEN)
    .padStart(DECIMALS, '0')
    .replace(/0+$/, '')
  return `${sign}${grouped.format(size / TOKEN)}${rest && '.' + rest}`
}

/** The exact amount of a typed text; null if it is not positive, or finer than the smallest unit. */
export function parseTokens(text: string): bigint | null {
  const match = /^\s*(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?\s*$/.exec(text)
  if (!match) return null
  const [, whole = '', part = ''] = match
  if (part.length > DECIMALS) return null
  const amount = BigInt(whole.replaceAll(',', '')) * TOKEN + BigInt(part.padEnd(DECIMALS, '0'))
  return amount > 0n ? amount : null
}

/** Basis points as per cent: 1250 is 12.5 %. */
export function formatBps(bps: number): string {
  return `${grouped.format(bps / 100)} %`
}

/** The basis points of a typed percentage; null if it is not from 0 to 100, or finer than a basis point. */
export function parsePercent(text: string): number | null {
  const match = /^\s*(\d{1,3})(?:\.(\d{1,2}))?\s*$/.exec(text)
  if (!match) return null
  const bps = Number(match[1]) * 100 + Number((match[2] ?? '').padEnd(2, '0'))
  return bps <= 10_000 ? bps : null
}

/** Millionths as per cent with two digits; positive ones with a sign if `signed`. */
export function formatMillionths(millionths: number, signed = false): string {
  const percent = (Math.abs(millionths) / 10_000).toFixed(2)
  const sign = millionths < 0 ? '−' : signed && millionths > 0 ? '+' : ''
  return `${sign}${percent} %`
}

/** A part of a whole in basis points, rounded up; 0 of nothing. */
export function bpsOf(part: bigint, whole: bigint): number {
  return whole > 0n ? Number((part * 10_000n + whole - 1n) / whole) : 0
}

/** A share from 0 to 1 as per cent with one digit: 0.9649 is 96.5 %. */
export function formatShare(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}

/** A score in millionths as a number of its metric. */
export function formatScore(millionths: number): string {
  const size = (Math.abs(millionths) / 1_000_000).toFixed(4)
  return `${millionths < 0 ? '−' : millionths > 0 ? '+' : ''}${size}`
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB'] as const

/** A size, rounded to a tenth of its unit. */
export function formatBytes(bytes: number): string {
  const at = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1)
  const amount = bytes / 1024 ** at
  return `${amount.toLocaleString('en', { maximumFractionDigits: at === 0 ? 0 : 1 })} ${UNITS[at] ?? ''}`
}

const GWEI = 10n ** 9n
const MICROETHER = 10n ** 12n

/** Ether for an amount of wei, rounded up to a millionth. */
export function formatEther(wei: bigint): string {
  const rounded = (wei + MICROETHER - 1n) / MICROETHER
  return `${(rounded / 1_000_000n).toLocaleString('en')}.${String(rounded % 1_000_000n).padStart(6, '0')}`
}

/** Gwei for an amount of wei, rounded to a thousandth, halves up. */
export function formatGwei(wei: bigint): string {
  return (Number((wei * 1000n + GWEI / 2n) / GWEI) / 1000).toLocaleString('en', { maximumFractionDigits: 3 })
}
