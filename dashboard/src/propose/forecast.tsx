/** The result of `consilium simulate` on the operator's own rows, beside the task's costs. It stays in this browser. */
import { useId, useState } from 'react'
import { formatBytes, formatTokens, formatWhole } from '../lib/amounts'
import { messageOf } from '../lib/errors'
import { formatMetric, isLowerBetter } from '../lib/metrics'
import { Figure, Notice, Tokens } from '../parts/basics'
import { QualityChart } from '../parts/charts'
import * as say from '../strings'
import { forecast as words } from '../strings/forecast'
import {
  differing,
  forecastOf,
  MOST_BYTES,
  parseSimulated,
  SimulatedRefused,
  type Refusal,
  type Simulated,
} from './simulated'

type Given = Simulated | { refused: string } | null

interface Of {
  sections: Readonly<Record<string, string>>
  pool: string
}

export function Forecast({ of }: { of: Of }) {
  const [given, setGiven] = useState<Given>(null)
  const means = useId()
  return (
    <section className="stack" aria-label={words.title}>
      <h3>{words.title}</h3>
      <p id={means} className="soft small">
        {words.means} <code>{words.command}</code>
      </p>
      <div className="tools">
        <label>
          {words.file}
          <input
            type="file"
            accept=".json,application/json"
            aria-describedby={means}
            onChange={(event) => {
              const [file] = event.target.files ?? []
              if (file) void read(file).then(setGiven)
            }}
          />
        </label>
      </div>
      {given && ('refused' in given ? <Notice kind="bad">{given.refused}</Notice> : <Shown of={given} beside={of} />)}
    </section>
  )
}

async function read(file: File): Promise<Given> {
  try {
    if (file.size > MOST_BYTES) throw new SimulatedRefused({ name: 'tooLarge' })
    return parseSimulated(await file.text())
  } catch (error) {
    return { refused: error instanceof SimulatedRefused ? inWords(error.why) : messageOf(error) }
  }
}

function inWords(why: Refusal): string {
  if (why.name === 'tooLarge') return words.refused.tooLarge(formatBytes(MOST_BYTES))
  if (why.name === 'malformed') return words.refused.malformed(why.field)
  return words.refused[why.name]
}

function Shown({ of, beside }: { of: Simulated; beside: Of }) {
  const others = differing(of, beside.sections)
  if (others.length > 0) return <Notice kind="wait">{words.otherTask(others)}</Notice>
  const { metric, course, pooled, rounds } = of
  const found = forecastOf(of)
  const shown = (value: number | null | undefined) => formatMetric(metric, value, null)
  return (
    <>
      <dl className="figures">
        <Figure
          name={say.quality.metric[metric]}
          value={shown(course.at(-1)?.[metric])}
          beside={say.quality.from(shown(course[0]?.[metric]), isLowerBetter(metric))}
        />
        {pooled !== null && <Figure name={words.pooled} value={shown(pooled)} />}
        <Figure
          name={words.rejected}
          value={words.of(formatWhole(found.rejected), formatWhole(found.cohorts))}
          beside={words.rejectedMeans}
        />
        <Figure name={words.slashed} value={formatWhole(found.slashed)} beside={words.slashedMeans} />
        <Figure
          name={words.paid}
          value={<Tokens of={found.paid} />}
          beside={words.ofPool(formatTokens(BigInt(beside.pool)))}
        />
        <Figure name={words.most} value={<Tokens of={found.most} />} />
        {found.void > 0 && (
          <Figure name={words.void} value={words.of(formatWhole(found.void), formatWhole(rounds.length))} />
        )}
        {found.absent > 0 && <Figure name={words.absent} value={formatWhole(found.absent)} />}
      </dl>
      {(found.rejected > 0 || found.slashed > 0) && <Notice kind="wait">{words.unfair}</Notice>}
      <QualityChart of={course} metric={metric} scale={null} />
    </>
  )
}
