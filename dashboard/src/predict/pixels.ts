/**
 * An image as nodes see it: `client/consilium_client/data/image/shades.py`. vitest and pytest hold both to
 * `tests/vectors/pixels.json`. Pillow brings the width or the height first to its size, by a rule of its own. Here the
 * width comes first, so that a shade of a resized image may differ by one.
 */
export interface Size {
  channels: number
  height: number
  width: number
}

/** Pixels (channels, height, width), channel by channel. */
export interface Pixels extends Size {
  values: Uint8Array
}

/** `rgba`: 4 bytes a pixel, row by row, all of them opaque. Of one channel it is grey by ITU-R 601-2. */
export function pixelsOf(rgba: Uint8ClampedArray, width: number, height: number, wanted: Size): Uint8Array {
  const plane = width * height
  const values = new Uint8Array(wanted.channels * plane)
  for (let at = 0; at < plane; at++) {
    const [red = 0, green = 0, blue = 0] = rgba.subarray(4 * at, 4 * at + 3)
    if (wanted.channels === 1) values[at] = (19_595 * red + 38_470 * green + 7_471 * blue + 0x8000) >> 16
    else for (const [channel, shade] of [red, green, blue].entries()) values[channel * plane + at] = shade
  }
  return resized({ channels: wanted.channels, height, width, values }, wanted)
}

function resized(image: Pixels, to: Size): Uint8Array {
  const { channels, height } = image
  const wide = along(image.values, channels * height, image.width, to.width, 1)
  const found = new Uint8Array(channels * to.height * to.width)
  for (let channel = 0; channel < channels; channel++) {
    const part = wide.subarray(channel * height * to.width, (channel + 1) * height * to.width)
    found.set(along(part, to.width, height, to.height, to.width), channel * to.height * to.width)
  }
  return found
}

const BITS = 22 // of a weight's fraction

/**
 * `lines` lines of `size` values are brought to `wanted` values each, by a triangle as wide as a value of the result.
 * `step`: between a line's values; lines lie beside each other if it is not 1.
 */
function along(values: Uint8Array, lines: number, size: number, wanted: number, step: number): Uint8Array {
  if (size === wanted) return values
  const found = new Uint8Array(lines * wanted)
  const scale = size / wanted
  const support = Math.max(scale, 1)
  for (let to = 0; to < wanted; to++) {
    const center = (to + 0.5) * scale
    const first = Math.max(0, Math.trunc(center - support + 0.5))
    const end = Math.min(size, Math.trunc(center + support + 0.5))
    const shares = Array.from({ length: end - first }, (_, at) =>
      Math.max(0, 1 - Math.abs((at + first - center + 0.5) * (1 / support))),
    )
    const whole = shares.reduce((sum, one) => sum + one, 0)
    const weights = shares.map((one) => Math.trunc(0.5 + (one / whole) * 2 ** BITS))
    for (let line = 0; line < lines; line++) {
      const start = step === 1 ? line * size : line
      const sum = weights.reduce(
        (sum, one, at) => sum + one * (values[start + (first + at) * step] ?? 0),
        2 ** (BITS - 1),
      )
      found[step === 1 ? line * wanted + to : to * step + line] = Math.min(255, sum >> BITS)
    }
  }
  return found
}
