/** A task's statistics: what round 0 counted over the rows of all its hospitals together. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Schemas } from '../api/client'
import { statistics as statisticsOf } from '../api/queries'
import { formatShare, formatWhole } from '../lib/amounts'
import { isKey } from '../lib/fields'
import { barsOf, formatNumber, missingShare, outlineOf, type Bar } from '../lib/statistics'
import * as say from '../strings'
import { statistics as words } from '../strings/statistics'
import { Card, Fault, Figure, Unfold } from './basics'
import { Table } from './table'

type Found = Schemas['Statistics']
type Column = Schemas['StatisticsColumn']
const SHOWN = 12 // columns at first
const FEW = 8 // named values that stand without a click

export default function Statistics({ task }: { task: Schemas['Task'] }) {
  const { data, error, refetch } = useQuery({ ...statisticsOf(task.task), enabled: task.round > 0 })
  const [shown, setShown] = useState(SHOWN)
  const [found] = data?.items ?? []
  if (!found) {
    if (!error) return null
    return (
      <Card title={words.title}>
        <Fault error={error} retry={() => void refetch()} />
      </Card>
    )
  }
  return (
    <Card title={words.title} means={words.means(found.hospitals)}>
      <Figures of={found} />
      <div className="histograms">
        {found.columns.slice(0, shown).map((one, index) => (
          <Histogram key={index} of={one} rows={found.rows} />
        ))}
      </div>
      {shown < found.columns.length && (
        <div>
          <button type="button" onClick={() => setShown(shown + 2 * SHOWN)}>
            {say.more}
          </button>
        </div>
      )}
      {found.left_out > 0 && <p className="soft small">{words.leftOut(found.left_out)}</p>}
    </Card>
  )
}

function Figures({ of: { rows, hospitals, things, deviation, epsilon, delta } }: { of: Found }) {
  return (
    <dl className="figures">
      <Figure name={isKey(things, words.things) ? words.things[things] : words.things.rows} value={formatWhole(rows)} />
      <Figure name={words.hospitals} value={hospitals} />
      {epsilon !== null && (
        <Figure name={words.epsilon} value={formatNumber(epsilon)} beside={words.delta(formatNumber(delta ?? 0))} />
      )}
      {epsilon === null ? (
        <Figure name={words.noise} value={words.exact} />
      ) : (
        <Figure name={words.noise} value={`± ${formatNumber(deviation)}`} beside={words.deviation} />
      )}
    </dl>
  )
}

function Histogram({ of, rows }: { of: Column; rows: number }) {
  const bars = barsOf(of, rows)
  const isNamed = of.names.length > 0
  const table = <Counts caption={of.name} of={bars} isNamed={isNamed} />
  return (
    <section>
      <h3>
        <bdi>{of.is_answer ? words.answer(of.name) : of.name}</bdi>
      </h3>
      <p className="soft small">{factsOf(of).join(' · ')}</p>
      {isNamed && of.names.length <= FEW ? (
        table
      ) : (
        <>
          <Drawn of={bars} />
          <Unfold title={say.tableOf}>{table}</Unfold>
        </>
      )}
    </section>
  )
}

function factsOf(of: Column): string[] {
  const { values, mean, quartiles, width } = of
  const missing = missingShare(of)
  const found = []
  if (values !== null) found.push(words.known(formatWhole(values)))
  if (missing !== null) found.push(words.missing(formatShare(missing)))
  if (mean !== null && width !== null) found.push(words.middle(formatNumber(mean), formatNumber(width / 2)))
  if (quartiles !== null && width !== null)
    found.push(words.quartiles(quartiles.map(formatNumber).join(', '), formatNumber(width)))
  return found
}

function Drawn({ of }: { of: readonly Bar[] }) {
  const [first, last] = [of[0], of.at(-1)]
  return (
    <div aria-hidden="true">
      <svg className="histogram line-1" viewBox="0 0 100 100" preserveAspectRatio="none">
        <path d={outlineOf(of)} />
      </svg>
      {first?.low != null && last?.high != null && (
        <p className="ends soft small">
          <span>{formatNumber(first.low)}</span>
          <span>{formatNumber(last.high)}</span>
        </p>
      )}
    </div>
  )
}

function Counts({ caption, of, isNamed }: { caption: string; of: readonly Bar[]; isNamed: boolean }) {
  return (
    <Table
      caption={caption}
      rows={of.map((bar, index) => ({ ...bar, index }))}
      keyOf={(bar) => bar.index}
      columns={[
        {
          text: isNamed ? words.value : words.range,
          of: ({ name, low, high }) =>
            name === null ? words.to(formatNumber(low ?? 0), formatNumber(high ?? 0)) : <bdi>{name}</bdi>,
        },
        { number: words.count, of: (bar) => formatWhole(bar.count) },
        { number: words.share, of: ({ share }) => (share === null ? '–' : formatShare(share)) },
      ]}
    />
  )
}
