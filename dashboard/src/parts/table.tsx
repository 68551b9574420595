import type { ReactNode } from 'react'

export interface Column<Row> {
  name: string
  cell: (row: Row) => ReactNode
  number?: boolean
  /** What the heading's hover says. */
  means?: string
}

/** On a phone every row is a card. `caption` names it for those who do not see the heading above it. */
export function Table<Row>(props: {
  caption: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  name: (row: Row) => string | number
  empty: string
}) {
  if (props.rows.length === 0) return <p className="soft">{props.empty}</p>
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label={props.caption}>
      <table className="cards">
        <caption className="visually-hidden">{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th
                key={column.name}
                scope="col"
                className={column.number ? 'number' : ''}
                title={column.means}
              >
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.name(row)}>
              {props.columns.map((column) => (
                <td key={column.name} className={column.number ? 'number' : ''} data-label={column.name}>
                  <span>{column.cell(row)}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
