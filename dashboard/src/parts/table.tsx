/** Tables. On a phone each row is a card. */
import type { QueryKey } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { rowsAtFirst } from '../lib/screen'
import * as say from '../strings'
import { Card, Tokens } from './basics'
import { LoadedList, type ListQuery } from './query'

/** A heading, under the kind of its column, and a row's value. `tokens` are amounts in the smallest unit. */
type Column<Row> =
  | { text: string; of: (row: Row) => ReactNode }
  | { number: string; of: (row: Row) => ReactNode; /** Shown on hover. */ means?: string }
  | { tokens: string; of: (row: Row) => string | bigint | undefined }

const MORE = 250 // rows with each click

function drawn<Row>(column: Column<Row>) {
  if ('text' in column) return { name: column.text, align: '', cell: column.of }
  if ('number' in column) return { name: column.number, align: 'number', cell: column.of, means: column.means }
  const cell = (row: Row): ReactNode => <Tokens of={column.of(row)} />
  return { name: column.tokens, align: 'number', cell }
}

export interface Shape<Row> {
  columns: readonly Column<Row>[]
  /** A key that no other row has. */
  keyOf: (row: Row) => string | number
  /** Shown instead of a table without rows. */
  empty?: string
}

interface Given<Row> extends Shape<Row> {
  /** Names the table for those who do not see the heading above it. */
  caption: string
  rows: readonly Row[]
  /** Shows all rows, because people compare them. */
  isWhole?: boolean
}

/** Its first rows, and the others on demand. */
export function Table<Row>(props: Given<Row>) {
  const [shown, setShown] = useState(props.isWhole ? Infinity : rowsAtFirst)
  return (
    <>
      <Rows {...props} rows={props.rows.slice(0, shown)} />
      {props.rows.length > shown && (
        <div>
          <button type="button" onClick={() => setShown(shown + MORE)}>
            {say.moreRows(props.rows.length - shown)}
          </button>
        </div>
      )}
    </>
  )
}

function Rows<Row>(props: Given<Row>) {
  const columns = props.columns.map(drawn)
  if (props.rows.length === 0) return <p className="soft">{props.empty}</p>
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label={props.caption}>
      <table className="cards">
        <caption className="visually-hidden">{props.caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, align, means }) => (
              <th key={name} scope="col" className={align} title={means}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.keyOf(row)}>
              {columns.map(({ name, align, cell }) => (
                <td key={name} className={align} data-label={name}>
                  <span>{cell(row)}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A card with a table of the same name, and more below it. */
export function TableCard<Row>(
  props: Shape<Row> & { title: string; means?: string | undefined; rows: readonly Row[]; children?: ReactNode },
) {
  const { title, means, children, ...table } = props
  return (
    <Card title={title} means={means}>
      <Table caption={title} {...table} />
      {children}
    </Card>
  )
}

/** A table of a list that the API gives page by page. */
export function ListedTable<Row, Key extends QueryKey>(
  props: Shape<Row> & { caption: string; query: ListQuery<Row, Key> },
) {
  const { query, ...table } = props
  const [few] = useState(rowsAtFirst)
  return (
    <LoadedList query={query} few={few}>
      {(items) => <Rows rows={items} {...table} />}
    </LoadedList>
  )
}
