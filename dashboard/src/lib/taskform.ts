/** The fields of a form for a JSON schema as pydantic writes it, and changes of its document. Pure. */
import { formatBound, point } from './amounts'
import { fieldOf } from './fields'

export interface Schema {
  type?: string
  title?: string
  description?: string
  default?: unknown
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly Schema[]
  oneOf?: readonly Schema[]
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  discriminator?: { propertyName: string; mapping: Readonly<Record<string, string>> }
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  $ref?: string
  $defs?: Readonly<Record<string, Schema>>
}

export type Tree = Readonly<Record<string, unknown>>

/** What a key takes. `optional`: a section that may be left out. `other`: what only the file can say. */
export type Kind =
  | { is: 'text' | 'number' | 'flag' | 'other' }
  | { is: 'choice'; of: readonly string[] }
  | { is: 'list'; numbers: 'all' | 'some' | 'none' }
  | { is: 'section'; of: Forms; optional: boolean }
  | { is: 'sections'; of: Forms }

/** A section's forms by name; `by` is the key that chooses one, or null if there is one form. */
export interface Forms {
  by: string | null
  forms: Readonly<Record<string, Schema>>
}

export function treeOf(value: unknown): Tree {
  return typeof value === 'object' && value && !Array.isArray(value) ? (value as Tree) : {}
}

function resolved(schema: Schema, root: Schema): Schema {
  const found = schema.$ref && root.$defs?.[schema.$ref.replace('#/$defs/', '')]
  return found ? { ...found, ...schema } : schema
}

function formsOf(given: Schema, root: Schema): Forms | null {
  if (given.discriminator) {
    const { propertyName: by, mapping } = given.discriminator
    const index = ([, $ref]: [string, string]) => (given.oneOf ?? []).findIndex((one) => one.$ref === $ref)
    const named = Object.entries(mapping).sort((one, other) => index(one) - index(other))
    const forms = named.map(([name, $ref]) => [name, resolved({ $ref }, root)] as const)
    return { by, forms: Object.fromEntries(forms) }
  }
  const schema = resolved(given, root)
  return schema.properties ? { by: null, forms: { '': schema } } : null
}

export function kindOf(given: Schema, root: Schema): Kind {
  const some = (given.anyOf ?? []).filter((one) => one.type !== 'null')
  const optional = some.length < (given.anyOf?.length ?? 0)
  const schema = (some.length === 1 ? some[0] : undefined) ?? given
  const forms = formsOf(schema, root)
  if (forms) return { is: 'section', of: forms, optional }
  if (some.length > 1)
    return some.every((one) => one.type === 'array') ? { is: 'list', numbers: 'some' } : { is: 'other' }
  if (schema.const !== undefined) return { is: 'choice', of: [textOf(schema.const)] }
  if (schema.enum) return schema.type === 'string' ? { is: 'choice', of: schema.enum.map(String) } : { is: 'number' }
  if (schema.type === 'array' && schema.items) {
    const inner = formsOf(schema.items, root)
    if (inner) return { is: 'sections', of: inner }
    if (schema.items.type === 'array' || schema.items.anyOf) return { is: 'other' }
    return { is: 'list', numbers: schema.items.type === 'string' ? 'none' : 'all' }
  }
  if (schema.type === 'boolean') return { is: 'flag' }
  if (schema.type === 'integer' || schema.type === 'number') return { is: 'number' }
  return { is: schema.type === 'string' ? 'text' : 'other' }
}

/** The form that a section has; without a choice its default, or else its first one. */
export function formOf({ by, forms }: Forms, section: Tree): string {
  const named = by === null ? '' : section[by]
  if (typeof named === 'string' && Object.hasOwn(forms, named)) return named
  const names = Object.keys(forms)
  return names.find((name) => by !== null && forms[name]?.properties?.[by]?.default === name) ?? names[0] ?? ''
}

/** The section in another form, with those of its keys that this one has, too. */
export function asForm({ by, forms }: Forms, section: Tree, name: string): Tree {
  const kept = Object.entries(section).filter(([key]) => Object.hasOwn(forms[name]?.properties ?? {}, key))
  return { ...(by === null ? {} : { [by]: name }), ...Object.fromEntries(kept.filter(([key]) => key !== by)) }
}

/** The section with another value of a key; undefined removes it. */
export function withKey(section: Tree, key: string, value: unknown): Tree {
  if (value !== undefined) return { ...section, [key]: value }
  return Object.fromEntries(Object.entries(section).filter(([one]) => one !== key))
}

const NUMBER = /^[+-]?(\d+(_\d+)*)(\.\d+)?(e[+-]?\d+)?$/i

/**
 * A typed number, as in a task file, or with the decimal mark of the browser's locale. Other text stays text, so that
 * the server can say what is wrong with it: also "100.000" where the mark is a comma, which many mean as a hundred thousand.
 */
export function numberOf(text: string, mark = point): unknown {
  const bare = text.trim()
  const plain = bare.replace(mark, '.')
  if (bare === '') return undefined
  if (mark !== '.' && /^[+-]?\d{1,3}(\.\d{3})+$/.test(bare)) return bare
  return NUMBER.test(plain) ? Number(plain.replaceAll('_', '')) : bare
}

/** A typed list: one value a line, or numbers with commas. */
export function listOf(text: string, numbers: 'all' | 'some' | 'none'): unknown {
  const lines = text.split(numbers === 'all' ? /[\n,]/ : '\n').map((line) => line.trim())
  const values = lines.filter((line) => line !== '')
  if (values.length === 0) return undefined
  const read = values.map((one) => numberOf(one))
  if (numbers === 'all' || (numbers === 'some' && read.every((one) => typeof one === 'number'))) return read
  return values
}

export function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join('\n')
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}

/** A field's bounds in words, such as "1 to 64"; empty without. */
export function boundsOf(
  given: Schema,
  words: { above: string; below: string; to: string; from: string; most: string },
) {
  const schema = given.anyOf?.find((one) => one.type !== 'null') ?? given
  if (schema.enum && schema.type !== 'string') return schema.enum.map(String).join(', ')
  const { minimum: least, maximum: most, exclusiveMinimum: above, exclusiveMaximum: below } = schema
  if (least !== undefined && most !== undefined) return `${formatBound(least)} ${words.to} ${formatBound(most)}`
  return [
    above !== undefined && `${words.above} ${formatBound(above)}`,
    least !== undefined && `${words.from} ${formatBound(least)}`,
    below !== undefined && `${words.below} ${formatBound(below)}`,
    most !== undefined && `${words.most} ${formatBound(most)}`,
  ]
    .filter(Boolean)
    .join(', ')
}

/** A key as a person reads it: "Min cohort size". */
export function nameOf(key: string): string {
  const words = key.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export function listIn(value: unknown, key: string): readonly unknown[] {
  const found = fieldOf(value, key)
  return Array.isArray(found) ? found : []
}
