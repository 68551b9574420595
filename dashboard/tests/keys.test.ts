import { expect, test } from 'vitest'
import { isKey } from '../src/lib/fields'

test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', '', null, undefined, 1])('%j is no key', (text) =>
  expect(isKey(text, { hospital: 1 })).toBe(false),
)

test('a key is one', () => expect(isKey('hospital', { hospital: 1 })).toBe(true))
