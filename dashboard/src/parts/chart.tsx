/** Lines over time or rounds, and their values as a table. `charts.tsx` has the charts themselves. */
import { extent } from 'd3-array'
import { scaleLinear } from 'd3-scale'
import { curveLinear, curveStepAfter, line } from 'd3-shape'
import { useEffect, useId, useRef, useState, type ReactNode } from 'react'
import { named } from '../lib/series'
import * as say from '../strings'
import { Unfold } from './basics'
import { Table } from './table'

interface Series {
  name: string
  values: readonly (number | null)[]
  isStep?: boolean
}

interface Drawn {
  /** The values that the lines stand over. */
  across: { name: string; values: readonly number[]; shown: (value: number) => string }
  series: readonly Series[]
  /** The unit of all values; short, because it stands above the axis. */
  unit: string
  shown: (value: number) => string
}

const COLOURS = 4 // of the theme
const DASHES = ['', '6 4', '2 3', '9 3 2 3'] as const // for those who do not see colours
const HEIGHT = 280 // lengths are in CSS pixels
const ROOM = { top: 32, right: 24, bottom: 26, left: 84 } as const // for the labels
const LETTER = 7 // average width
const TICKS_UP = 5
const MANY = 40 // values; more are shown without dots

const colourOf = (which: number): number => (which % COLOURS) + 1

/** The width of an element in CSS pixels, 0 before its first layout. */
function useWidth() {
  const room = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const watching = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0))
    if (room.current) watching.observe(room.current)
    return () => watching.disconnect()
  }, [])
  return { room, width }
}

function Lines({ of: { across, series, unit, shown } }: { of: Drawn }) {
  const { room, width } = useWidth()
  const [pointed, setPointed] = useState<number | null>(null)
  const [first = 0, last = 0] = extent(across.values)
  const [least = 0, most = 0] = extent(series.flatMap((one) => one.values.filter((value) => value !== null)))
  const x = scaleLinear([first, last], [ROOM.left, Math.max(ROOM.left, width - ROOM.right)])
  const y = scaleLinear([least, most], [HEIGHT - ROOM.bottom, ROOM.top]).nice(TICKS_UP)
  const isWhole = across.values.every(Number.isInteger)
  const labelled = LETTER * Math.max(across.shown(first).length, across.shown(last).length) // pixels of a tick's label
  const points = (one: Series) =>
    across.values.flatMap((at, index) => {
      const value = one.values[index]
      return value === null || value === undefined ? [] : [[x(at), y(value)] as [number, number]]
    })
  const point = (left: number) => {
    const distances = across.values.map((at) => Math.abs(x(at) - left))
    setPointed(distances.indexOf(Math.min(...distances)))
  }
  const at = pointed === null ? undefined : across.values[pointed]
  return (
    <div className="chart" ref={room} aria-hidden="true">
      <svg
        width={width}
        height={HEIGHT}
        onPointerMove={(event) => point(event.clientX - event.currentTarget.getBoundingClientRect().left)}
        onPointerLeave={() => setPointed(null)}
      >
        <text className="unit" x={0} y={14}>
          {say.unitBy(unit, across.name)}
        </text>
        {y.ticks(TICKS_UP).map((value) => (
          <g key={value} transform={`translate(0 ${y(value)})`}>
            <line className="grid" x1={ROOM.left} x2={width - ROOM.right} />
            <text x={ROOM.left - 10} dy="0.32em" textAnchor="end">
              {shown(value)}
            </text>
          </g>
        ))}
        {named(x.ticks(Math.max(1, Math.floor(width / Math.max(40, labelled + 60)))), across.shown)
          .filter((value) => (!isWhole || Number.isInteger(value)) && x(value) + labelled / 2 <= width)
          .map((value) => (
            <text key={value} x={x(value)} y={HEIGHT - 6} textAnchor="middle">
              {across.shown(value)}
            </text>
          ))}
        {at !== undefined && <line className="pointed" x1={x(at)} x2={x(at)} y1={ROOM.top} y2={HEIGHT - ROOM.bottom} />}
        {series.map((one, which) => (
          <g key={one.name} className={`line-${colourOf(which)}`}>
            <path
              d={line().curve(one.isStep ? curveStepAfter : curveLinear)(points(one)) ?? ''}
              strokeDasharray={DASHES[which % COLOURS]}
            />
            {across.values.length < MANY &&
              points(one).map(([left, top], index) => <circle key={index} cx={left} cy={top} r={3} />)}
          </g>
        ))}
      </svg>
      <ul className="legend">
        {series.map((one, which) => (
          <li key={one.name}>
            <svg width="28" height="8" className={`line-${colourOf(which)}`}>
              <path d="M0 4H28" strokeDasharray={DASHES[which % COLOURS]} />
            </svg>
            {one.name}
            {pointed !== null && <b>{shownOf(one, pointed, shown)}</b>}
          </li>
        ))}
        {at !== undefined && (
          <li>
            {across.name} <b>{across.shown(at)}</b>
          </li>
        )}
      </ul>
    </div>
  )
}

function shownOf(one: Series, index: number, shown: (value: number) => string): string {
  const value = one.values[index]
  return value === null || value === undefined ? '–' : shown(value)
}

export interface ChartProps extends Drawn {
  caption: string
  /** Shown instead of a chart of fewer than two values. */
  empty: ReactNode
  /** Shown instead of a chart whose values never change. */
  flat?: ReactNode
}

export default function Chart({ caption, across, series, unit, shown, empty, flat }: ChartProps) {
  const id = useId()
  if (across.values.length < 2) return <p className="soft">{empty}</p>
  if (flat !== undefined && series.every((one) => new Set(one.values).size < 2)) return <p className="soft">{flat}</p>
  return (
    <figure aria-labelledby={id}>
      <figcaption id={id} className="visually-hidden">
        {caption}, {say.unitBy(unit, across.name)}
      </figcaption>
      <Lines of={{ across, series, unit, shown }} />
      <Unfold title={say.tableOf}>
        <Table
          caption={`${caption}, ${unit}`}
          rows={across.values.map((at, index) => ({ at, index }))}
          keyOf={(row) => row.index}
          columns={[
            { text: across.name, of: (row) => across.shown(row.at) },
            ...series.map((one) => ({
              number: one.name,
              of: (row: { index: number }) => shownOf(one, row.index, shown),
            })),
          ]}
        />
      </Unfold>
    </figure>
  )
}
