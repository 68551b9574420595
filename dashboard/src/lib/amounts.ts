/** Amounts of tokens. They are bigint of the smallest unit, 10^18 in one token; only text for people has a point. */

export const DECIMALS = 18
export const TOKEN = 10n ** BigInt(DECIMALS)

const grouped = new Intl.NumberFormat('en')

/** In whole tokens with two digits, rounded to the nearest, halves away from zero: as the command line shows it. */
export function formatTokens(amount: bigint): string {
  const sign = amount < 0n ? '-' : ''
  const size = amount < 0n ? -amount : amount
  const hundredths = (size * 100n + TOKEN / 2n) / TOKEN
  return `${sign}${grouped.format(hundredths / 100n)}.${String(hundredths % 100n).padStart(2, '0')}`
}

/** All digits that it has, and no others. */
export function formatExactly(amount: bigint): string {
  const sign = amount < 0n ? '-' : ''
  const size = amount < 0n ? -amount : amount
  const rest = String(size % TOKEN)
    .padStart(DECIMALS, '0')
    .replace(/0+$/, '')
  return `${sign}${grouped.format(size / TOKEN)}${rest && '.' + rest}`
}

/** What somebody typed, exactly; null for what is no positive amount, or is finer than the smallest unit. */
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

/** What somebody typed as per cent, in basis points; null for what is none between 0 and 100, or is finer. */
export function parsePercent(text: string): number | null {
  const match = /^\s*(\d{1,3})(?:\.(\d{1,2}))?\s*$/.exec(text)
  if (!match) return null
  const bps = Number(match[1]) * 100 + Number((match[2] ?? '').padEnd(2, '0'))
  return bps <= 10_000 ? bps : null
}

/** Millionths as per cent with two digits, signed where that says something. */
export function formatMillionths(millionths: number, signed = false): string {
  const percent = (Math.abs(millionths) / 10_000).toFixed(2)
  const sign = millionths < 0 ? '−' : signed && millionths > 0 ? '+' : ''
  return `${sign}${percent} %`
}

/** A score, in millionths, as the number that the metric is. */
export function formatScore(millionths: number): string {
  const size = (Math.abs(millionths) / 1_000_000).toFixed(4)
  return `${millionths < 0 ? '−' : millionths > 0 ? '+' : ''}${size}`
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB'] as const

/** Rounded to a tenth of the unit. */
export function formatBytes(bytes: number): string {
  const at = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1)
  const amount = bytes / 1024 ** at
  return `${amount.toLocaleString('en', { maximumFractionDigits: at === 0 ? 0 : 1 })} ${UNITS[at] ?? ''}`
}

const GWEI = 10n ** 9n
const MICROETHER = 10n ** 12n

/** Of wei, rounded up to a millionth of an ether. */
export function formatEther(wei: bigint): string {
  const rounded = (wei + MICROETHER - 1n) / MICROETHER
  return `${(rounded / 1_000_000n).toLocaleString('en')}.${String(rounded % 1_000_000n).padStart(6, '0')}`
}

/** Of wei, to a thousandth, halves up. */
export function formatGwei(wei: bigint): string {
  return (Number((wei * 1000n + GWEI / 2n) / GWEI) / 1000).toLocaleString('en', { maximumFractionDigits: 3 })
}
