/** Times are whole seconds since the epoch. */
import * as say from '../strings'
import { LOCALE } from './language'

const words = say.times
const UNITS: readonly (readonly [number, string])[] = [
  [86_400, words.day],
  [3_600, words.hour],
  [60, words.minute],
  [1, words.second],
]

/** A duration in its two largest units: 93784 is "1 d 2 h". */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const at = UNITS.findIndex(([size]) => whole >= size)
  if (at < 0) return `0 ${words.second}`
  let rest = whole
  return UNITS.slice(at, at + 2)
    .map(([size, name]) => {
      const count = Math.floor(rest / size)
      rest %= size
      return count ? `${count} ${name}` : ''
    })
    .filter(Boolean)
    .join(' ')
}

/** "in 3 min 20 s", "2 d ago" or "now". */
export function formatDistance(time: number, now: number): string {
  const seconds = Math.round(time - now)
  if (seconds === 0) return words.now
  return seconds > 0 ? words.ahead(formatDuration(seconds)) : words.ago(formatDuration(-seconds))
}

/** Formats times of a locale and time zone; without one, of the browser's. The zone is named. */
export function timesIn(locale: string, timeZone?: string) {
  const dated = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'long', timeZone })
  return (time: number) => dated.format(time * 1000)
}

/** A time on the reader's clock. */
export const formatTime = timesIn(LOCALE)

const days = new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium' })

/** A day on the reader's calendar. */
export function formatDay(time: number): string {
  return days.format(time * 1000)
}

/** A time in ISO 8601 and UTC, the same for every reader. */
export function formatUtc(time: number): string {
  return new Date(time * 1000).toISOString().replace('.000Z', 'Z')
}
