import { sha256 } from 'viem'
import { expect, test } from 'vitest'
import vectors from '../../tests/vectors/outer.json'
import { after, begin, type OuterSpec } from '../src/verify/outer'

const SIZE = 40_000

/** A number as Python's `float.hex` writes it. */
function parseHex(text: string): number {
  const [, sign = '', whole = '', part = '', power = ''] = /^(-?)0x(\d)\.(\w+)p(.+)$/.exec(text) ?? []
  return (sign ? -1 : 1) * (parseInt(whole + part, 16) / 16 ** part.length) * 2 ** Number(power)
}

test.each(vectors)('$outer.name gives the bits that Python gives', ({ outer, values, sha256: hash }) => {
  const spec = outer as OuterSpec
  const counts = Array.from({ length: SIZE }, (_, count) => count)
  const initial = Float32Array.from(counts, (count) => (((count * 7919) % 2_001) - 1_000) / 500)
  const means = [104_729, 1_299_709, 15_485_863].map((step) =>
    Float64Array.from(counts, (count) => (((count * step) % 4_001) - 2_000) / 1_000),
  )
  const { model } = means.reduce((state, mean) => after(spec, state, mean), begin(spec, initial))
  expect([0, 1, 32_767, 32_768, 39_999].map((at) => model[at])).toEqual(values.map(parseHex))
  expect(sha256(new Uint8Array(model.buffer))).toBe(`0x${hash}`)
})

test('a state of another outer step is refused', () => {
  const state = begin({ name: 'mean' }, new Float32Array(1))
  const momentum = { name: 'momentum', learning_rate: 1, momentum: 0.9 } as const
  expect(() => after(momentum, state, new Float64Array(1))).toThrow('momentum')
})
