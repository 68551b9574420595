/** A model's quality on held-out rows: now, beside the start, and after each round. */
import { useQuery } from '@tanstack/react-query'
import type { Schemas } from '../api/client'
import { models } from '../api/queries'
import { formatFixed, formatShare } from '../lib/amounts'
import { metricsOf, type MetricName } from '../lib/series'
import { say } from '../strings'
import { Card, Figure } from './basics'
import { ChartRoom, QualityChart } from './charts'
import { hasModel } from './model'

const words = say.quality

export function Quality({ task }: { task: Schemas['Task'] }) {
  const isPossible = hasModel(task)
  const { data } = useQuery({ ...models(task.task), enabled: isPossible })
  if (!isPossible) return null
  const model = data?.items.find((one) => one.measured !== null)
  if (!model?.measured)
    return <Card title={words.title}>{data ? <p className="soft">{words.none}</p> : <ChartRoom />}</Card>
  const { rows, sources, rounds } = model.measured
  return (
    <Card title={words.title} means={words.means(rows, sources)}>
      <p>{words.after(model.round, model.rounds)}</p>
      <Figures of={rounds} />
      <QualityChart of={rounds} />
    </Card>
  )
}

function Figures({ of }: { of: readonly Schemas['Quality'][] }) {
  const [first, last] = [of[0], of.at(-1)]
  if (!first || !last) return null
  return (
    <dl className="figures">
      {metricsOf(of, 3).map((metric) => (
        <Figure
          key={metric}
          name={words.metric[metric]}
          value={shownValue(metric, last)}
          beside={words.from(shownValue(metric, first))}
        />
      ))}
    </dl>
  )
}

function shownValue(metric: MetricName, of: Schemas['Quality']): string {
  const value = of[metric]
  if (typeof value !== 'number') return '–'
  if (metric === 'accuracy') return formatShare(value)
  return metric === 'log_loss' ? words.nats(formatFixed(value, 3)) : formatFixed(value, 3)
}
