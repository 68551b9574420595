import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import { models, network, tasks } from '../api/queries'
import { formatMetric, hasModel, isLowerBetter, metricsOf } from '../lib/metrics'
import { questionOf } from '../lib/question'
import { Card, Figure, Later, Page } from '../parts/basics'
import { Loaded, LoadedList } from '../parts/query'
import * as say from '../strings'

const Activity = lazy(() => import('../parts/activity'))
const words = say.overview
const RECENT = tasks({ sort: '-task', limit: 25 })
const SHOWN = 3 // models

export default function Overview() {
  return (
    <Page title={words.title} lead={words.lead}>
      <LoadedList query={RECENT} isTall>
        {(items) => (
          <>
            <Models of={items.filter(hasModel).slice(0, SHOWN)} />
            <Later>
              <Suspense>
                <Loaded query={network()}>{(found) => <Activity of={found} tasks={items} />}</Loaded>
              </Suspense>
            </Later>
          </>
        )}
      </LoadedList>
    </Page>
  )
}

function Models({ of }: { of: readonly Schemas['TaskSummary'][] }) {
  return (
    <Card title={words.models} means={words.modelsMean}>
      {of.length ? (
        <ul className="models">
          {of.map((task) => (
            <li key={task.task}>
              <Model of={task} />
            </li>
          ))}
        </ul>
      ) : (
        <p className="soft">{words.noModels}</p>
      )}
    </Card>
  )
}

function Model({ of: { task, name, asked } }: { of: Schemas['TaskSummary'] }) {
  const { data } = useQuery(models(task))
  const rounds = data?.items.find((one) => one.measured !== null)?.measured?.rounds ?? []
  const [metric] = metricsOf(rounds, 1)
  return (
    <>
      <h3>
        <Link to={`/tasks/${task}`}>
          <bdi>{name ?? say.tasks.unnamed(task)}</bdi>
        </Link>
      </h3>
      <p className="small">
        <bdi>{questionOf(asked)}</bdi>
      </p>
      <dl>
        {metric ? (
          <Figure
            name={say.quality.metric[metric]}
            value={formatMetric(metric, rounds.at(-1)?.[metric], asked)}
            beside={say.quality.from(formatMetric(metric, rounds[0]?.[metric], asked), isLowerBetter(metric))}
          />
        ) : (
          <Figure name={words.metric} value="–" beside={data ? words.notMeasured : say.loading} />
        )}
      </dl>
    </>
  )
}
