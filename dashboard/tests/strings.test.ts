/** Each language says what English says: the same texts, with the same arguments, in words of its own. */
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { LANGUAGES, pluralIn, regionOf } from '../src/lib/language'
import * as en from '../src/strings'
import * as de from '../src/strings/de'
import * as es from '../src/strings/es'
import * as fr from '../src/strings/fr'

type Texts = { readonly [Name in keyof typeof en]: (typeof en)[Name] extends string ? string : (typeof en)[Name] }
const TRANSLATED = { de, es, fr } satisfies Record<string, Texts>

/** Texts that are the same in English: names, units, commands, and the field's own words. */
const SAME: Partial<Record<string, readonly string[]>> = {
  all: [
    'AUC',
    'Consilium',
    'Blobs',
    'Dice',
    'PR-AUC',
    'Slash',
    'Slashes',
    'Stake',
    'Unbonding',
    'Wallet',
    'https',
    'min',
    'Webhook',
    'name example org',
  ],
  de: [
    ...[
      'Aggregator',
      'Arena',
      'Block',
      'Commitments',
      'Delegator',
      'Ensemble',
      'Ensembles',
      'Explorer',
      'Gas',
      'Log',
      'Median',
      'Name',
      'Node',
      'Nodes',
    ],
    ...['Phase', 'Pool', 'Portfolio', 'System', 'Token', 'in', 'live'],
  ],
  es: ['Arena', 'Gas', 'Hospital', 'Token', 'no', 'tokens'],
  fr: [
    ...[
      'Actions',
      'Calibration',
      'Classes',
      'Commission',
      'commission',
      'Contact',
      'Contribution',
      'Ensemble',
      'Ensembles',
      'Gas',
      'Images',
      'Phase',
    ],
    ...['Transaction', 'Verdict', 'quartiles'],
  ],
}

const sameOf = (language: string) => [...(SAME.all ?? []), ...(SAME[language] ?? [])]

interface Text {
  words: string
  /** Positions of the arguments that it uses; null of a plain text. */
  uses: readonly number[] | null
}

const SOURCES = import.meta.glob<string>('../src/strings/**/*.ts', { query: '?raw', import: 'default', eager: true })

/** The texts of a file by their paths, such as `nav.tasks`. */
function textsOf(source: string): Map<string, Text> {
  const found = new Map<string, Text>()
  const read = (node: ts.Expression, path: string): void => {
    if (ts.isObjectLiteralExpression(node)) {
      for (const one of node.properties) {
        if (ts.isPropertyAssignment(one)) read(one.initializer, `${path}.${nameOf(one.name)}`)
        else found.set(`${path}.${one.name ? nameOf(one.name) : '…'}`, { words: '', uses: null })
      }
    } else if (ts.isArrayLiteralExpression(node)) node.elements.forEach((one, at) => read(one, `${path}.${at}`))
    else if (ts.isArrowFunction(node)) found.set(path, { words: wordsIn(node.body), uses: usesOf(node) })
    else found.set(path, { words: wordsIn(node), uses: null })
  }
  for (const statement of ts.createSourceFile('', source, ts.ScriptTarget.Latest, true).statements) {
    if (!ts.isVariableStatement(statement) || !statement.modifiers) continue
    for (const { name, initializer } of statement.declarationList.declarations)
      if (initializer) read(initializer, name.getText())
  }
  return found
}

const nameOf = (name: ts.PropertyName) => ('text' in name ? name.text : name.getText())

function wordsIn(node: ts.Node): string {
  if (ts.isStringLiteralLike(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isTemplateHead(node))
    return node.text
  const found: string[] = []
  ts.forEachChild(node, (child) => void found.push(wordsIn(child)))
  return found.filter(Boolean).join(' ')
}

function usesOf({ parameters, body }: ts.ArrowFunction): number[] {
  const names = parameters.map((one) => one.name.getText())
  const used = new Set<number>()
  const look = (node: ts.Node) => {
    if (ts.isIdentifier(node) && names.includes(node.text)) used.add(names.indexOf(node.text))
    ts.forEachChild(node, look)
  }
  look(body)
  return [...used].toSorted()
}

const files = Object.keys(SOURCES).filter((path) => /strings\/[a-z]+\.ts$/.test(path))
const fileOf = (language: string, path: string) => SOURCES[path.replace('strings/', `strings/${language}/`)]

/** A line for each text with a fault. */
function faultsOf(language: string, fault: (own: Text | undefined, english: Text) => boolean): string[] {
  return files.flatMap((path) => {
    const own = textsOf(fileOf(language, path) ?? '')
    return [...textsOf(SOURCES[path] ?? '')]
      .filter(([name, text]) => fault(own.get(name), text))
      .map(([name, { words }]) => `${path.replace('../src/strings/', `${language}/`)}: ${name} ("${words}")`)
  })
}

const plainly = (text: string) => text.replace(/[^\p{L}\d-]+/gu, ' ').trim()

test('texts are found in all files', () => {
  expect(files.length).toBeGreaterThan(20)
  expect(textsOf(SOURCES['../src/strings/audit.ts'] ?? '').get('audit.done')).toEqual({
    words: ' of   rounds verified',
    uses: [0, 1],
  })
})

test('each language is offered, and each that is offered is there', () => {
  expect(LANGUAGES.map(([language]) => language)).toEqual(['en', ...Object.keys(TRANSLATED)])
})

describe.each(Object.keys(TRANSLATED))('%s', (language) => {
  test('lacks no text', () => {
    expect(faultsOf(language, (own) => own === undefined)).toEqual([])
  })

  test('has no text that English lacks', () => {
    const more = files.flatMap((path) => {
      const english = textsOf(SOURCES[path] ?? '')
      return [...textsOf(fileOf(language, path) ?? '').keys()].filter((name) => !english.has(name))
    })
    expect(more).toEqual([])
  })

  test('uses the same arguments', () => {
    const differs = (own: Text | undefined, { uses }: Text) =>
      own !== undefined && JSON.stringify(own.uses ?? []) !== JSON.stringify(uses ?? [])
    expect(faultsOf(language, differs)).toEqual([])
  })

  test('leaves no text in English', () => {
    const isSame = (own: Text | undefined, { words }: Text) =>
      own !== undefined &&
      plainly(own.words) === plainly(words) &&
      /\p{L}{2}/u.test(words) &&
      !words.startsWith('consilium ') &&
      !sameOf(language).includes(plainly(words))
    expect(faultsOf(language, isSame)).toEqual([])
  })

  test('counts by the rules of its own language', () => {
    const others = new RegExp(`[!=]== 1\\b|(pluralIn|ListFormat)\\('(?!${language}')`)
    for (const path of files) expect(fileOf(language, path) ?? '').not.toMatch(others)
  })

  test('asks for a sign-in in characters that EIP-4361 allows', () => {
    for (const page of ['propose', 'told']) {
      const statement = textsOf(fileOf(language, `../src/strings/${page}.ts`) ?? '').get(`${page}.statement`)
      expect(statement?.words).toMatch(/^[\w\-.~!$&'()*+,;=:/?#[\]@ ]+$/)
    }
  })
})

test('a singular is where the language has it', () => {
  expect(['de', 'es', 'fr'].map((language) => pluralIn(language)(0, 'one', 'other'))).toEqual(['other', 'other', 'one'])
  expect([1, 2, 21, 1_000_000].map((n) => pluralIn('fr')(n, 'one', 'other'))).toEqual([
    'one',
    'other',
    'other',
    'other',
  ])
})

test('the region is the reader’s where the language is', () => {
  expect(regionOf('de', ['fr-CH', 'de-CH', 'de'])).toBe('de-CH')
  expect(regionOf('de', ['da-DK', 'en'])).toBe('de')
})
