/** Lines over time or rounds, with the same as a table for those who would rather read. Loaded when a page has one. */
import { useId, type ReactNode } from 'react'
import { CartesianGrid, Line, LineChart, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts'
import { say } from '../strings'
import { Table } from './table'

export interface Series {
  name: string
  values: readonly (number | null)[]
  isStep?: boolean
}

const COLOURS = ['var(--chart-1)', 'var(--chart-2)', 'var(--chart-3)', 'var(--chart-4)'] as const
const DASHES = ['', '6 4', '2 3', '9 3 2 3'] as const // colour alone tells nothing to some

export default function Chart(props: {
  caption: string
  across: { name: string; values: readonly number[]; shown: (value: number) => string }
  series: readonly Series[]
  shown: (value: number) => string
  empty: ReactNode
  /** Shown instead where nothing ever changed. */
  flat?: ReactNode
}) {
  const id = useId()
  const { across, series, shown } = props
  if (across.values.length < 2) return <p className="soft">{props.empty}</p>
  if (props.flat !== undefined && series.every((one) => new Set(one.values).size < 2))
    return <p className="soft">{props.flat}</p>
  const rows = across.values.map((at, index) => ({
    at,
    ...Object.fromEntries(series.map((one, which) => [`y${which}`, one.values[index] ?? null])),
  }))
  return (
    <figure aria-labelledby={id}>
      <figcaption id={id} className="visually-hidden">
        {props.caption}
      </figcaption>
      <div className="chart" aria-hidden="true">
        <ResponsiveContainer width="100%" height="100%" initialDimension={{ width: 600, height: 300 }}>
          <LineChart
            data={rows}
            margin={{ top: 8, right: 16, bottom: 4, left: 8 }}
            accessibilityLayer={false}
          >
            <CartesianGrid stroke="var(--line)" vertical={false} />
            <XAxis
              dataKey="at"
              type="number"
              domain={['dataMin', 'dataMax']}
              tickFormatter={across.shown}
              stroke="var(--soft)"
              minTickGap={28}
              allowDecimals={false}
            />
            <YAxis tickFormatter={shown} stroke="var(--soft)" width={78} domain={['auto', 'auto']} />
            <Tooltip
              labelFormatter={(at) => `${across.name} ${across.shown(Number(at))}`}
              formatter={(value) => shown(Number(value))}
              contentStyle={{
                background: 'var(--card)',
                border: '1px solid var(--line)',
                borderRadius: 8,
                color: 'var(--ink)',
              }}
            />
            {series.map((one, which) => (
              <Line
                key={one.name}
                name={one.name}
                dataKey={`y${which}`}
                type={one.isStep ? 'stepAfter' : 'linear'}
                stroke={COLOURS[which % COLOURS.length] ?? COLOURS[0]}
                strokeDasharray={DASHES[which % DASHES.length] ?? ''}
                strokeWidth={2}
                dot={across.values.length < 40 && { r: 3 }}
                isAnimationActive={false}
                connectNulls
              />
            ))}
          </LineChart>
        </ResponsiveContainer>
      </div>
      <ul className="legend" aria-hidden="true">
        {series.map((one, which) => (
          <li key={one.name}>
            <span className={`swatch-${(which % COLOURS.length) + 1}`} />
            {one.name}
          </li>
        ))}
      </ul>
      <details>
        <summary>{say.tableOf}</summary>
        <Table
          caption={props.caption}
          rows={across.values.map((at, index) => ({ at, index }))}
          name={(row) => row.index}
          empty=""
          columns={[
            { name: across.name, cell: (row) => across.shown(row.at) },
            ...series.map((one) => ({
              name: one.name,
              number: true,
              cell: (row: { index: number }) => {
                const value = one.values[row.index]
                return value === null || value === undefined ? '–' : shown(value)
              },
            })),
          ]}
        />
      </details>
    </figure>
  )
}
