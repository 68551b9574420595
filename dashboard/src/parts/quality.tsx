/** A model's quality on held-out rows: now, beside the start, and after each round. */
import { useQuery } from '@tanstack/react-query'
import type { Schemas } from '../api/client'
import { models } from '../api/queries'
import { formatMetric, hasModel, isLowerBetter, metricsOf, type Quality as Measured, type Scale } from '../lib/metrics'
import * as say from '../strings'
import { Card, Coded, Figure } from './basics'
import { ChartRoom, QualityChart } from './charts'

const words = say.quality

export function Quality({ task }: { task: Schemas['Task'] }) {
  const isPossible = hasModel(task)
  const { data } = useQuery({ ...models(task.task), enabled: isPossible })
  if (!isPossible) return null
  const model = data?.items.find((one) => one.measured !== null)
  if (!model?.measured)
    return (
      <Card title={words.title}>
        {data ? (
          <p className="soft">
            <Coded text={words.none} />
          </p>
        ) : (
          <ChartRoom />
        )}
      </Card>
    )
  const { rows, sources, rounds } = model.measured
  const [first, last] = [rounds[0], rounds.at(-1)]
  return (
    <Card title={words.title} means={words.means(rows, sources)}>
      <p>{words.after(model.round, model.rounds)}</p>
      <dl className="figures">
        {metricsOf(rounds, 3).map((metric) => (
          <Figure
            key={metric}
            name={words.metric[metric]}
            value={formatMetric(metric, last?.[metric], task.asked)}
            beside={words.from(formatMetric(metric, first?.[metric], task.asked), isLowerBetter(metric))}
          />
        ))}
      </dl>
      {model.references && <References of={model.references} rounds={rounds} scale={task.asked} />}
      <div className="pair">
        {metricsOf(rounds, 2).map((metric) => (
          <QualityChart key={metric} of={rounds} metric={metric} scale={task.asked} />
        ))}
      </div>
    </Card>
  )
}

interface Referred {
  of: NonNullable<Schemas['ModelView']['references']>
  rounds: readonly Measured[]
  scale: Scale | null
}

/** Of the first metric: a demo's operator has all rows, and states what they give without the task. */
function References({ of, rounds, scale }: Referred) {
  const [metric] = metricsOf(rounds, 1)
  const named = [
    [words.alone, of.alone],
    [words.pooled, of.pooled],
  ] as const
  if (!metric) return null
  return (
    <>
      <dl className="figures">
        {named
          .filter(([, measures]) => measures[metric] !== undefined)
          .map(([name, measures]) => (
            <Figure key={name} name={name} value={formatMetric(metric, measures[metric], scale)} />
          ))}
      </dl>
      <p className="soft small">{words.stated}</p>
    </>
  )
}
