import { useQueries } from '@tanstack/react-query'
import { Link, useSearchParams } from 'react-router'
import type { Schemas } from '../api/client'
import { models, task as taskOf } from '../api/queries'
import { comparedOf, numbersOf } from '../lib/compared'
import { formatMetric, metricsOf } from '../lib/metrics'
import { questionOf } from '../lib/question'
import { Card, Fault, Loading, Page } from '../parts/basics'
import { ComparedChart } from '../parts/charts'
import { TableCard } from '../parts/table'
import { NamedTask } from '../parts/tasks'
import * as say from '../strings'
import { compare as words } from '../strings/compare'

const { columns } = say

interface Side {
  task: Schemas['Task']
  rounds: readonly Schemas['Quality'][]
}

export default function Compare() {
  const numbers = numbersOf(useSearchParams()[0].get('of'))
  const tasks = useQueries({ queries: numbers.map((one) => taskOf(one)) })
  const measured = useQueries({ queries: numbers.map((one) => models(one)) })
  const sides = tasks.flatMap(({ data: task }, at) => {
    const found = measured[at]?.data?.items.find((one) => one.measured !== null)
    return task ? [{ task, rounds: found?.measured?.rounds ?? [] }] : []
  })
  return (
    <Page title={words.title} lead={words.lead}>
      {numbers.length < 2 && (
        <p>
          {words.choose} <Link to="/tasks">{words.toList}</Link>
        </p>
      )}
      {[...tasks, ...measured].map(
        ({ error, refetch }, at) => error && <Fault key={at} error={error} retry={() => void refetch()} />,
      )}
      {tasks.some((one) => one.isPending) ? <Loading isTall /> : sides.length > 0 && <Sides of={sides} />}
    </Page>
  )
}

function Sides({ of }: { of: readonly Side[] }) {
  const charts = comparedOf(of.map(({ task, rounds }) => ({ task: task.task, rounds })))
  const scaleOf = (number: number | undefined) => of.find(({ task }) => task.task === number)?.task.asked ?? null
  return (
    <>
      <Figures of={of} />
      {charts.length === 0 && <p className="soft">{words.noFigures}</p>}
      {charts.map((one) => (
        <Card key={one.metric} title={say.quality.metric[one.metric]}>
          <ComparedChart of={one} scale={scaleOf(one.lines[0]?.task)} />
        </Card>
      ))}
    </>
  )
}

function Figures({ of }: { of: readonly Side[] }) {
  const shown = ({ task, rounds }: Side, at: number) => {
    const [metric] = metricsOf(rounds, 1)
    return metric ? formatMetric(metric, rounds.at(at)?.[metric], task.asked) : '–'
  }
  const nameOf = ({ rounds }: Side) => metricsOf(rounds, 1).map((metric) => say.quality.metric[metric])[0] ?? '–'
  return (
    <TableCard
      title={words.table}
      rows={of}
      keyOf={({ task }) => task.task}
      columns={[
        { text: columns.task, of: ({ task }) => <NamedTask of={task} /> },
        { text: say.task.question, of: ({ task }) => <bdi>{questionOf(task.asked)}</bdi> },
        { text: say.task.model, of: ({ task }) => task.spec?.model ?? '–' },
        {
          number: say.roles.hospital,
          of: ({ task }) => task.participants.filter((one) => one.role === 'hospital').length,
        },
        { number: 'ε', of: ({ task }) => (task.spec ? (task.spec.privacy?.epsilon ?? words.noNoise) : '–') },
        { number: columns.round, of: ({ task }) => say.tasks.ofRounds(task.round, task.rounds) },
        { text: say.task.metric, of: nameOf },
        { number: words.start, of: (side) => shown(side, 0) },
        { number: words.now, of: (side) => shown(side, -1) },
        { tokens: words.spent, of: ({ task: { money } }) => BigInt(money.rewards) + BigInt(money.bounties) },
      ]}
    />
  )
}
