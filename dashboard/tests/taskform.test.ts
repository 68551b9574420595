import { expect, it, test } from 'vitest'
import { asForm, boundsOf, formOf, kindOf, listOf, numberOf, textOf, withKey, type Schema } from '../src/lib/taskform'

const ROOT: Schema = {
  $defs: {
    Table: { properties: { kind: { const: 'table', default: 'table' }, label: { type: 'string' } } },
    Images: { properties: { kind: { const: 'images' }, label: { type: 'string' }, height: { type: 'integer' } } },
  },
}
const DATA: Schema = {
  discriminator: { propertyName: 'kind', mapping: { images: '#/$defs/Images', table: '#/$defs/Table' } },
  oneOf: [{ $ref: '#/$defs/Images' }, { $ref: '#/$defs/Table' }],
}

test('a section without its choice has the default form, and another one keeps what both have', () => {
  const kind = kindOf(DATA, ROOT)
  if (kind.is !== 'section') throw new Error(kind.is)
  expect(formOf(kind.of, {})).toBe('table')
  expect(formOf(kind.of, { kind: 'constructor' })).toBe('table')
  const images = asForm(kind.of, { kind: 'table', label: 'ill', features: [] }, 'images')
  expect(images).toEqual({ kind: 'images', label: 'ill' })
  expect(withKey(images, 'label', undefined)).toEqual({ kind: 'images' })
})

it.each([
  [{ anyOf: [{ $ref: '#/$defs/Table' }, { type: 'null' }] }, 'section'],
  [{ type: 'array', items: DATA }, 'sections'],
  [{ anyOf: [{ type: 'number' }, { type: 'null' }] }, 'number'],
  [{ enum: ['a', 'b'], type: 'string' }, 'choice'],
  [{ enum: [8, 16], type: 'integer' }, 'number'],
  [{ type: 'object', additionalProperties: {} }, 'other'],
] as const)('%j is a %s', (schema, is) => {
  expect(kindOf(schema, ROOT).is).toBe(is)
})

test('what is typed is never lost: a number, or else the text', () => {
  expect(['1e-5', '100_000', ' -3 ', '1.', 'many', ''].map((one) => numberOf(one))).toEqual([
    1e-5,
    100000,
    -3,
    '1.',
    'many',
    undefined,
  ])
  expect(listOf('16, 8', 'all')).toEqual([16, 8])
  expect(listOf('0\n1\n', 'none')).toEqual(['0', '1'])
  expect([listOf('0\n1', 'some'), listOf('a\n1', 'some'), listOf(' \n', 'none')]).toEqual([
    [0, 1],
    ['a', '1'],
    undefined,
  ])
  expect(textOf([1, 'a'])).toBe('1\na')
})

test('bounds are told in words', () => {
  const words = { above: '>', from: '≥', below: '<', most: '≤', to: 'to' }
  expect(boundsOf({ minimum: 1, maximum: 10_000 }, words)).toBe('1 to 10000')
  expect(boundsOf({ anyOf: [{ exclusiveMinimum: 0, maximum: 100 }, { type: 'null' }] }, words)).toBe('> 0, ≤ 100')
})

test('a typed number may have the decimal mark of the locale', () => {
  expect(['0,5', '0.5', '1,2,3', '10.000', '10.0000'].map((one) => numberOf(one, ','))).toEqual([
    0.5,
    0.5,
    '1,2,3',
    '10.000',
    10,
  ])
  expect(numberOf('10.000', '.')).toBe(10)
})

test('terms of a sale are left out, or four whole numbers', () => {
  const keys = ['server_percent', 'operator_percent', 'trainers_percent', 'voters_percent']
  const percent: Schema = { type: 'integer', minimum: 0, maximum: 100 }
  const Sale = { properties: Object.fromEntries(keys.map((key) => [key, percent])), required: keys }
  const kind = kindOf({ anyOf: [{ $ref: '#/$defs/Sale' }, { type: 'null' }], default: null }, { $defs: { Sale } })
  if (kind.is !== 'section') throw new Error(kind.is)
  expect([kind.optional, keys.map((key) => kindOf(kind.of.forms['']?.properties?.[key] ?? {}, {}).is)]).toEqual([
    true,
    keys.map(() => 'number'),
  ])
  const typed = ['20', '10', '55', '15']
  const sale = keys.reduce(
    (section, key, at) => withKey(section, key, numberOf(typed[at] ?? '')),
    asForm(kind.of, {}, ''),
  )
  // The server writes the file of this document, with these lines at its end.
  expect(JSON.stringify(withKey({ name: 'a task' }, 'sale', sale))).toBe(
    '{"name":"a task","sale":{"server_percent":20,"operator_percent":10,"trainers_percent":55,"voters_percent":15}}',
  )
})
