/** Times are whole seconds since the epoch. */

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
]

/** A duration in its two largest units: 93784 is "1 d 2 h". */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const at = UNITS.findIndex(([size]) => whole >= size)
  if (at < 0) return '0 s'
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
  if (seconds === 0) return 'now'
  return seconds > 0 ? `in ${formatDuration(seconds)}` : `${formatDuration(-seconds)} ago`
}

const days = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' })

/** A day in UTC. */
export function formatDay(time: number): string {
  return days.format(time * 1000)
}

const dated = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' })

/** A time in UTC, so that all readers of a page see the same. */
export function formatTime(time: number): string {
  return `${dated.format(time * 1000)} UTC`
}
