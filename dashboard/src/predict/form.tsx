/** Parts of forms for a model's inputs and answers, without the model's runtime. */
import { useState } from 'react'
import { Notice } from '../parts/basics'
import { Choice } from '../parts/choice'
import { Field } from '../parts/field'
import * as say from '../strings'
import type { Answer } from './model'
import { parseTable, valuesOf, type Column } from './rows'

const words = say.predict

/** Cells by column; a missing one is empty. */
export type Cells = Record<string, string>

export function Cell({
  of,
  text,
  fault,
  change,
}: {
  of: Column
  text: string
  fault: string
  change: (to: string) => void
}) {
  if (!('codes' in of))
    return <Field name={words.range(of.column, of.min, of.max)} text={text} fault={fault} change={change} />
  const codes = valuesOf(of).map((value) => [value, value] as const)
  const odd = fault ? [[text, text] as const] : [] // of a table: it stays in sight
  return (
    <div className="field">
      <Choice name={of.column} value={text} of={[['', words.missing], ...codes, ...odd]} change={change} />
      <p className="bad small" role="status">
        {fault}
      </p>
    </div>
  )
}

/** `take`: gets all rows of a table. */
export function FromTable(props: {
  columns: readonly Column[]
  fill: (cells: Cells) => void
  take?: (rows: readonly Cells[]) => void
}) {
  const { columns, fill } = props
  const [rows, setRows] = useState<Cells[]>([])
  const [at, setAt] = useState(0)
  const [notice, setNotice] = useState('')
  const own = (cells: Cells) => Object.fromEntries(columns.map(({ column }) => [column, tidied(cells[column] ?? '')]))
  const show = (all: Cells[], which: number) => {
    setAt(which)
    fill(own(all[which] ?? {}))
  }
  const take = (text: string) => {
    const table = parseTable(text)
    const missing = columns.map(({ column }) => column).filter((name) => !table.names.includes(name))
    const isNone = missing.length === columns.length || table.rows.length === 0
    setRows(isNone ? [] : table.rows)
    props.take?.(isNone ? [] : table.rows.map(own))
    setNotice(isNone ? words.noColumns : missing.length ? words.lacks(missing) : '')
    if (!isNone) show(table.rows, 0)
  }
  return (
    <>
      <div className="tools">
        <label>
          {words.table}
          <input
            type="file"
            accept=".csv,.tsv,.txt,text/csv"
            onChange={(event) => void event.target.files?.[0]?.text().then(take)}
          />
        </label>
        <label>
          {words.pasted}
          <textarea rows={1} value="" onChange={(event) => take(event.target.value)} />
        </label>
        {rows.length > 1 && (
          <label>
            {`${words.row} ${words.ofRows(rows.length)}`}
            <input
              type="number"
              min={1}
              max={rows.length}
              value={at + 1}
              onChange={({ target: { valueAsNumber: which } }) => {
                if (which >= 1 && which <= rows.length) show(rows, Math.trunc(which) - 1)
              }}
            />
          </label>
        )}
      </div>
      {notice && <Notice kind="wait">{notice}</Notice>}
    </>
  )
}

/** A number as a select has it: 1.0 is 1. */
function tidied(text: string): string {
  const isNumber = /^[-+]?\d+\.0*$/.test(text)
  return isNumber ? String(Number(text)) : text
}

export function Result(props: {
  of: { answers: readonly Answer[]; exclusive: boolean }
  values: readonly number[] | Error | undefined
}) {
  const { values } = props
  const { answers, exclusive } = props.of
  if (values instanceof Error) return <Notice kind="bad">{values.message}</Notice>
  const best = values && exclusive ? Math.max(...values) : null
  return (
    <div role="status">
      {values && (
        <dl className="shares" aria-label={words.result}>
          {answers.map(({ words: name, unit }, at) => {
            const value = values[at] ?? NaN
            return (
              <div key={name} className={value === best ? 'best' : ''}>
                <dt>
                  <bdi>{name}</bdi>
                </dt>
                <dd>
                  {unit === null && <progress max={1} value={value} aria-label={name} />}
                  <data value={value}>{unit === null ? words.percent(value) : words.amount(value, unit)}</data>
                </dd>
              </div>
            )
          })}
        </dl>
      )}
    </div>
  )
}
