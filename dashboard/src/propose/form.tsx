/** A form for a task file, from its own JSON schema: the few decisions first, and all other keys below "More". */
import { useId, useState, type ReactNode } from 'react'
import type { Schemas } from '../api/client'
import {
  asForm,
  boundsOf,
  formOf,
  kindOf,
  listOf,
  nameOf,
  numberOf,
  textOf,
  treeOf,
  withKey,
  type Forms,
  type Kind,
  type Schema,
  type Tree,
} from '../lib/taskform'
import { Later, Unfold } from '../parts/basics'
import { Choice } from '../parts/choice'
import { propose as words } from '../strings/propose'

/** Keys in sight, beside those that must be there. */
const FIRST = new Set([
  'name',
  'data',
  'data.label',
  'data.classes',
  'data.question',
  'model',
  'privacy',
  'rounds',
  'rounds.rounds',
  'rounds.min_hospitals',
  'rounds.max_hospitals',
  'money',
  'money.pool',
])
/** The list that may be long, of the data's columns. It comes last. */
const COLUMNS = 'features'
const SHOWN = 3 // of a list of sections

type Faults = readonly Schemas['Fault'][]
type Change = (value: unknown) => void

/** `path`: the key as in the file. `where`: as the server's faults name it, with each section's form. */
interface Position {
  root: Schema
  faults: Faults
  path: string
  where: string
}

interface KeyProps {
  schema: Schema
  name: string
  isNeeded: boolean
  at: Position
  value: unknown
  change: Change
}

const inside = (at: Position, key: string): Position => ({
  ...at,
  path: at.path === '' ? key : `${at.path}.${key}`,
  where: at.where === '' ? key : `${at.where}.${key}`,
})

/** The first fault of a key, or of what is in it. */
const faultAt = ({ faults, where: key }: Position) =>
  faults.find(({ where }) => where === key || where.startsWith(`${key}.`))

export function TaskForm(props: { root: Schema; document: Tree; faults: Faults; change: (document: Tree) => void }) {
  const { root, document, faults, change } = props
  const at = { root, faults, path: '', where: '' }
  return (
    <>
      <Keys schema={root} at={at} section={document} change={change} without={null} />
      <Later>
        <Columns {...props} at={inside(at, 'data')} />
      </Later>
    </>
  )
}

/** The columns of the data, if the data's form has any. */
function Columns({ root, document, change, at }: Parameters<typeof TaskForm>[0] & { at: Position }) {
  const kind = kindOf(root.properties?.data ?? {}, root)
  if (kind.is !== 'section') return null
  const data = treeOf(document.data)
  const chosen = formOf(kind.of, data)
  const schema = kind.of.forms[chosen]?.properties?.[COLUMNS]
  if (!schema) return null
  return (
    <Key
      schema={schema}
      name={COLUMNS}
      isNeeded
      at={inside({ ...at, where: `${at.where}.${chosen}` }, COLUMNS)}
      value={data[COLUMNS]}
      change={(value) => change(withKey(document, 'data', withKey(data, COLUMNS, value)))}
    />
  )
}

interface KeysProps {
  schema: Schema
  at: Position
  section: Tree
  change: (section: Tree) => void
  without: string | null
}

/** The keys of a section. `without`: the key that chose its form. */
function Keys({ schema, at, section, change, without }: KeysProps) {
  const isLast = (key: string) => at.path === 'data' && key === COLUMNS
  const keys = Object.keys(schema.properties ?? {}).filter((key) => key !== without && !isLast(key))
  const isNeeded = (key: string) => schema.required?.includes(key) === true
  const isFirst = (key: string) => isNeeded(key) || FIRST.has(at.path === '' ? key : `${at.path}.${key}`)
  const rest = keys.filter((key) => !isFirst(key))
  const shown = (key: string) => (
    <Key
      key={key}
      name={key}
      schema={schema.properties?.[key] ?? {}}
      isNeeded={isNeeded(key)}
      at={inside(at, key)}
      value={section[key]}
      change={(value) => change(withKey(section, key, value))}
    />
  )
  return (
    <>
      <div className="keys">{keys.filter(isFirst).map(shown)}</div>
      {rest.length > 0 && (
        <Unfold title={words.more(at.path)} isMade={rest.some((key) => faultAt(inside(at, key)) !== undefined)}>
          <div className="keys">{rest.map(shown)}</div>
        </Unfold>
      )}
    </>
  )
}

function Key(props: KeyProps) {
  const kind = kindOf(props.schema, props.at.root)
  if (kind.is === 'section') return <Section {...props} kind={kind} />
  if (kind.is === 'sections') return <Sections {...props} of={kind.of} />
  return <Leaf {...props} kind={kind} />
}

function Section({ kind, name, at, value, change, isNeeded }: KeyProps & { kind: Kind & { is: 'section' } }) {
  const isThere = value !== undefined || !kind.optional || isNeeded
  return (
    <fieldset className="part">
      <legend>{nameOf(name)}</legend>
      {kind.optional && (
        <label className="flag">
          <input
            type="checkbox"
            checked={isThere}
            onChange={(event) => change(event.target.checked ? asForm(kind.of, {}, formOf(kind.of, {})) : undefined)}
          />
          {words.use(at.path)}
        </label>
      )}
      {isThere && <Form of={kind.of} at={at} section={treeOf(value)} change={change} />}
    </fieldset>
  )
}

/** A section in one of its forms. */
function Form({ of, at, section, change }: { of: Forms; at: Position; section: Tree; change: Change }) {
  const chosen = formOf(of, section)
  const schema = of.forms[chosen] ?? {}
  const { by } = of
  return (
    <>
      {by !== null && (
        <Choice
          name={nameOf(by)}
          value={chosen}
          of={Object.keys(of.forms).map((one) => [one, one] as const)}
          change={(one) => change(asForm(of, section, one))}
        />
      )}
      {schema.description && <p className="soft small">{schema.description}</p>}
      <Keys
        schema={schema}
        at={by === null ? at : { ...at, where: `${at.where}.${chosen}` }}
        section={section}
        change={change}
        without={by}
      />
    </>
  )
}

function Sections({ of, name, at, value, change, schema }: KeyProps & { of: Forms }) {
  const [isWhole, setWhole] = useState(false)
  const items = Array.isArray(value) ? (value as unknown[]) : []
  const hasHiddenFault = at.faults.some(
    ({ where }) => where.startsWith(`${at.where}.`) && parseInt(where.slice(at.where.length + 1)) >= SHOWN,
  )
  const shown = isWhole || hasHiddenFault ? items : items.slice(0, SHOWN)
  return (
    <fieldset className="part">
      <legend>{nameOf(name)}</legend>
      {schema.description && <p className="soft small">{schema.description}</p>}
      {shown.map((item, index) => (
        <fieldset key={index} className="part">
          <legend>{words.item(index + 1, textOf(treeOf(item).name))}</legend>
          <Form
            of={of}
            at={{ ...inside(at, String(index)), path: at.path }}
            section={treeOf(item)}
            change={(next) => change(items.with(index, next))}
          />
          <button type="button" onClick={() => change(items.toSpliced(index, 1))}>
            {words.remove(index + 1)}
          </button>
        </fieldset>
      ))}
      <div className="tools">
        {shown.length < items.length && (
          <button type="button" onClick={() => setWhole(true)}>
            {words.showAll(items.length)}
          </button>
        )}
        <button
          type="button"
          onClick={() => {
            setWhole(true)
            change([...items, asForm(of, {}, formOf(of, {}))])
          }}
        >
          {words.add}
        </button>
      </div>
    </fieldset>
  )
}

/** A key with a plain value. Its typed text stays as it is while it means the value. */
function Leaf({ kind, name, schema, isNeeded, at, value, change }: KeyProps & { kind: Kind }) {
  const id = useId()
  const [typed, setTyped] = useState('')
  const read = (text: string) =>
    kind.is === 'list'
      ? listOf(text, kind.numbers)
      : kind.is === 'number'
        ? numberOf(text)
        : text === ''
          ? undefined
          : text
  const fault = faultAt(at)
  const same = JSON.stringify(read(typed)) === JSON.stringify(value)
  const means = [
    schema.description,
    boundsOf(schema, words.bounds),
    kind.is === 'list' && (kind.numbers === 'all' ? words.numbers : words.lines),
  ]
  const common = {
    'aria-describedby': `${id} ${id}-fault`,
    'aria-invalid': fault !== undefined,
    'aria-required': isNeeded,
  }
  const text = {
    ...common,
    value: same ? typed : textOf(value),
    placeholder: textOf(schema.default),
    autoComplete: 'off',
    spellCheck: false,
    onChange: (event: { target: { value: string } }) => {
      setTyped(event.target.value)
      change(read(event.target.value))
    },
  }
  return (
    <div className="field">
      <label>
        {nameOf(name)}
        {kind.is === 'flag' ? (
          <input
            type="checkbox"
            {...common}
            checked={(value ?? schema.default) === true}
            onChange={(event) => change(event.target.checked)}
          />
        ) : kind.is === 'choice' ? (
          <select {...common} value={textOf(value)} onChange={(event) => change(read(event.target.value))}>
            <option value="">{words.byDefault(textOf(schema.default))}</option>
            {kind.of.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        ) : kind.is === 'list' ? (
          <textarea {...text} rows={Math.min(6, Math.max(2, textOf(value).split('\n').length))} />
        ) : kind.is === 'other' ? (
          <output>{value === undefined ? words.onlyInFile : words.inFile}</output>
        ) : (
          <input {...text} inputMode={kind.is === 'number' ? 'decimal' : 'text'} />
        )}
      </label>
      <Means id={id}>{means.filter(Boolean).join('; ')}</Means>
      <p id={`${id}-fault`} className="bad small">
        {fault?.what}
      </p>
    </div>
  )
}

function Means({ id, children }: { id: string; children: ReactNode }) {
  return (
    <p id={id} className="soft small">
      {children}
    </p>
  )
}
