import { sha256 } from 'viem'
import { expect, test } from 'vitest'
import vectors from '../../tests/vectors/pixels.json'
import { pixelsOf } from '../src/predict/pixels'
import { columnsOf, parseTable, readCell, valuesOf, type Column, type Input } from '../src/predict/rows'

test.each(vectors)('$before becomes $after as by Pillow', ({ before, after, first, sha256: hash }) => {
  const [rows = 0, columns = 0] = before
  const [channels = 0, height = 0, width = 0] = after
  const rgba = Uint8ClampedArray.from({ length: 4 * rows * columns }, (_, at) => {
    const byte = 3 * Math.floor(at / 4) + (at % 4)
    return at % 4 === 3 ? 255 : Number((BigInt(byte) ** 2n * 7n + BigInt(byte) * 31n) % 251n)
  })
  const found = pixelsOf(rgba, columns, rows, { channels, height, width })
  expect([...found.subarray(0, 8)]).toEqual(first)
  expect(sha256(found)).toBe(`0x${hash}`)
})

const age: Column = { column: 'age', min: 0, max: 120 }
const sex: Column = { column: 'sex', codes: [0, 1, 2] }
const smoker: Column = { column: 'smoker', codes: [0, 1], names: ['nein', 'früher'] }

test('a column of codes with several inputs is one column, in its place', () => {
  const inputs: Input[] = [sex, { ...sex }, age, { column: 'age', is_missing: true }]
  expect(columnsOf(inputs)).toEqual([sex, age])
})

test('a named value is read by its name, and stands for its code', () => {
  expect(valuesOf(smoker)).toEqual(['nein', 'früher'])
  expect(valuesOf(sex)).toEqual(['0', '1', '2'])
  expect(readCell(smoker, ' fru\u0308her ')).toEqual({ value: 1, fault: '' })
  expect(readCell(smoker, '?').value).toBeNaN()
  expect(readCell(smoker, '1').fault).toContain('values nein, früher')
})

test.each([
  ['', NaN],
  [' ? ', NaN],
  ['61.5', 61.5],
  ['1.2e2', 120],
  ['-0', -0],
])('%j is a value', (text, value) => {
  expect(readCell(age, text)).toEqual({ value, fault: '' })
})

test.each([
  [age, '121', 'from 0 to 120'],
  [age, '61,5', 'Write a number'],
  [age, '0x10', 'Write a number'],
  [age, 'NaN', 'Write a number'],
  [sex, '3', 'codes 0, 1, 2'],
])('of %j, %j is refused', (column, text, words) => {
  expect(readCell(column, text).fault).toContain(words)
})

test.each([
  ['age,sex\n61,1\n\n50,2', ','],
  ['\ufeffage;sex\r\n61;1\r\n50;2\r\n', ';'],
  ['age\tsex\n61\t1\n50\t2', 'tab'],
  ['"age","sex"\n"61","1"\n"50","2"', 'quotes'],
])('a table %j is read', (text) => {
  expect(parseTable(text)).toEqual({
    names: ['age', 'sex'],
    rows: [
      { age: '61', sex: '1' },
      { age: '50', sex: '2' },
    ],
  })
})

test('a quoted cell may have commas, quotes and lines', () => {
  expect(parseTable('a,b\n"x, ""y""\nz",2').rows).toEqual([{ a: 'x, "y"\nz', b: '2' }])
})
