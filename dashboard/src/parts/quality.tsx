/** A model's quality on held-out rows: now, beside the start, and after each round. */
import { useQuery } from '@tanstack/react-query'
import type { Schemas } from '../api/client'
import { models } from '../api/queries'
import { formatShare } from '../lib/amounts'
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
  const area = (one: Schemas['Quality']) => one.auc?.toFixed(3) ?? '–'
  return (
    <dl className="figures">
      <Figure
        name={words.accuracy}
        value={formatShare(last.accuracy)}
        beside={words.from(formatShare(first.accuracy))}
      />
      <Figure name={words.auc} value={area(last)} beside={words.from(area(first))} />
      <Figure
        name={words.logLoss}
        value={words.nats(last.log_loss.toFixed(3))}
        beside={words.from(first.log_loss.toFixed(3))}
      />
    </dl>
  )
}
