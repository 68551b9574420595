import { useInfiniteQuery } from '@tanstack/react-query'
import { Fragment, lazy, Suspense, useState, type ReactNode } from 'react'
import { Link, useParams } from 'react-router'
import type { Schemas } from '../api/client'
import { BASE } from '../api/client'
import { rounds, task as taskOf } from '../api/queries'
import { Asked } from '../parts/asked'
import {
  Account,
  Ago,
  Card,
  Countdown,
  Crumbs,
  Facts,
  Fault,
  Figure,
  Hash,
  Later,
  Loading,
  OutcomeBadge,
  Page,
  PhaseBadge,
  Tokens,
} from '../parts/basics'
import { Model } from '../parts/model'
import { Table } from '../parts/table'
import { formatScore } from '../lib/amounts'
import { membership, type Told } from '../lib/membership'
import { progressOf } from '../lib/progress'
import { say } from '../strings'
import Missing from './missing'

const Chart = lazy(() => import('../parts/chart'))
const Operate = lazy(() => import('../wallet/operate'))
const words = say.task

export default function Task() {
  const number = Number(useParams().task)
  if (!Number.isSafeInteger(number) || number < 1) return <Missing />
  return (
    <Asked query={taskOf(number)}>
      {(task) => (
        <Page
          title={task.name ?? words.title(number)}
          crumbs={
            <Crumbs
              to={[
                ['/tasks', say.tasks.title],
                [`/tasks/${number}`, words.title(number)],
              ]}
            />
          }
          beside={<PhaseBadge phase={task.phase} />}
          lead={say.phaseMeans[task.phase]}
        >
          {task.stopping && task.phase !== 'ended' && (
            <p className="notice wait">{words.stopping(task.last_round)}</p>
          )}
          <dl className="figures">
            <Figure name={say.tasks.columns.round} value={say.tasks.ofRounds(task.round, task.rounds)} />
            {task.phase !== 'ended' && (
              <Figure name={words.deadline} value={<Countdown to={task.deadline} phase={task.phase} />} />
            )}
            <Figure name={words.pool} value={<Tokens of={task.money.pool} />} />
            <Figure name={words.left} value={<Tokens of={task.money.left} />} />
            {task.spec?.privacy && <Figure name={words.epsilon} value={task.spec.privacy.epsilon} />}
          </dl>
          <Rounds task={task} />
          <Later>
            <div className="columns">
              <Money task={task} />
              <Privacy task={task} />
              <Spec task={task} />
            </div>
            <Participants task={task} />
            <Operating task={task} />
            <Model task={task} />
            <Card title={words.terms}>
              <details>
                <summary>{words.allTerms(Object.keys(task.terms).length)}</summary>
                <Facts
                  of={Object.entries(task.terms).map(([name, value]) => [
                    name,
                    <code key={name}>{String(value)}</code>,
                  ])}
                />
              </details>
            </Card>
          </Later>
        </Page>
      )}
    </Asked>
  )
}

function Rounds({ task }: { task: Schemas['Task'] }) {
  const { data, error, refetch } = useInfiniteQuery(rounds(task.task))
  const items = data?.pages.flatMap((page) => page.items)
  return (
    <>
      <Card title={words.progress} means={words.progressMeans}>
        {error && <Fault error={error} retry={() => void refetch()} />}
        {items ? <Progress of={items} /> : !error && <div className="chart-room" />}
      </Card>
      {items && <RoundTable task={task.task} items={items} />}
    </>
  )
}

function Progress({ of }: { of: Schemas['RoundSummary'][] }) {
  const progress = progressOf(of)
  return (
    <Suspense fallback={<div className="chart-room" />}>
      <Chart
        caption={words.progress}
        across={{ name: words.roundColumns.round, values: progress.rounds, shown: String }}
        series={[
          { name: words.total, values: progress.gains },
          ...progress.cohorts.map((values, cohort) => ({ name: words.cohort(cohort), values })),
        ].slice(0, 4)}
        shown={formatScore}
        empty={progress.rounds.length ? words.oneRound : words.noneSettled}
      />
    </Suspense>
  )
}

function RoundTable({ task, items }: { task: number; items: Schemas['RoundSummary'][] }) {
  const columns = words.roundColumns
  return (
    <Card title={words.rounds}>
      <Table
        caption={words.rounds}
        rows={items}
        name={(round) => round.round}
        empty={words.noRounds}
        columns={[
          {
            name: columns.round,
            cell: (round) => (
              <Link to={`/tasks/${task}/rounds/${round.round}`}>
                {round.round}
                {round.round === 0 && ` (${words.statistics})`}
              </Link>
            ),
          },
          { name: columns.outcome, cell: (round) => <OutcomeBadge of={round} /> },
          { name: columns.medians, cell: (round) => round.medians.map(formatScore).join(', ') || '–' },
          {
            name: columns.accepted,
            cell: (round) =>
              round.medians.length ? words.acceptedOf(round.accepted.length, round.medians.length) : '–',
          },
          { name: columns.ended, cell: (round) => (round.ended_at ? <Ago of={round.ended_at} /> : '–') },
        ]}
      />
    </Card>
  )
}

function Money({ task }: { task: Schemas['Task'] }) {
  const { money } = task
  return (
    <Card title={words.money}>
      <Facts
        of={[
          [words.pool, <Tokens key="pool" of={money.pool} />],
          [words.rewards, <Tokens key="rewards" of={money.rewards} />],
          [words.bounties, <Tokens key="bounties" of={money.bounties} />],
          [words.refund, <Tokens key="refund" of={money.refund} />],
          [words.left, <Tokens key="left" of={money.left} />],
          [words.burnt, <Tokens key="burnt" of={money.burnt} />],
          [words.slashed, <Tokens key="slashed" of={money.slashed} />],
        ]}
      />
    </Card>
  )
}

function Privacy({ task }: { task: Schemas['Task'] }) {
  if (!task.spec) return null
  const { privacy } = task.spec
  return (
    <Card title={words.privacy}>
      {privacy ? (
        <>
          <Facts
            of={[
              [words.epsilon, privacy.epsilon],
              [words.delta, privacy.delta],
            ]}
          />
          <p className="soft small">{words.spent(Math.min(task.round, task.rounds), task.rounds)}</p>
        </>
      ) : (
        <p className="soft">{words.noPrivacy}</p>
      )}
      <Membership model={task.spec.model} epsilon={privacy?.epsilon ?? null} terms={task.terms} />
    </Card>
  )
}

function Membership(of: { model: string; epsilon: number | null; terms: Schemas['Terms'] }) {
  const hospitals = of.terms.masked ? of.terms.min_cohort_size : 1
  const told = membership(of.model, of.epsilon, hospitals)
  const columns = words.membershipColumns
  const figures = ({ auc, found }: Told['alone']) =>
    words.membershipFound(auc.toFixed(2), `${Math.round(100 * found)} %`)
  return (
    <>
      <h3>{words.membership}</h3>
      <p className="soft small">
        {words.membershipMeans(told[0]?.alone.training.startsWith('epsilon') ?? false)}
      </p>
      <Table
        caption={words.membership}
        rows={told}
        name={(one) => one.rows}
        empty=""
        columns={[
          { name: columns.rows, number: true, cell: (one) => one.rows },
          {
            name: columns.together,
            number: true,
            cell: (one) => words.membershipSum(figures(one.together), one.together.hospitals),
          },
          { name: columns.alone, number: true, cell: (one) => figures(one.alone) },
        ]}
      />
    </>
  )
}

/** Each keeps the direction of its letters to itself. */
function Names({ of }: { of: readonly string[] }) {
  return of.map((one, place) => (
    <Fragment key={one}>
      {place > 0 && ', '}
      <bdi>{one}</bdi>
    </Fragment>
  ))
}

function Spec({ task }: { task: Schemas['Task'] }) {
  const { spec } = task
  const facts: (readonly [string, ReactNode])[] = [
    [words.operator, <Account key="operator" of={task.operator} />],
    [words.aggregator, <Account key="aggregator" of={task.aggregator} as="aggregator" />],
  ]
  if (spec) {
    facts.push(
      [words.model, spec.model],
      [words.parameters, spec.parameters.toLocaleString('en')],
      [words.data, spec.data],
      [words.classes, <Names key="classes" of={spec.classes} />],
      [words.metric, spec.metric],
      [words.blobs, spec.update_blobs],
      [words.lanes, spec.lanes_per_update.toLocaleString('en')],
    )
  }
  return (
    <Card title={words.spec}>
      <Facts of={facts} />
      {task.spec_fault && (
        <p className="bad">
          <bdi>{task.spec_fault}</bdi>
        </p>
      )}
      {spec ? (
        <p>
          <a href={`${BASE}/v1/artifacts/files/${task.spec_hash}`}>{words.download}</a>{' '}
          <Hash of={task.spec_hash} />
        </p>
      ) : (
        <p className="soft">
          {words.specUnknown} <Hash of={task.spec_hash} />
        </p>
      )}
    </Card>
  )
}

function Operating({ task }: { task: Schemas['Task'] }) {
  const [open, setOpen] = useState(false)
  return (
    <Card title={say.operate.title} means={say.operate.means}>
      {open ? (
        <Suspense fallback={<Loading />}>
          <Operate task={task} />
        </Suspense>
      ) : (
        <div>
          <button type="button" onClick={() => setOpen(true)}>
            {say.operate.open}
          </button>
        </div>
      )}
    </Card>
  )
}

function Participants({ task }: { task: Schemas['Task'] }) {
  const { columns } = words
  return (
    <Card title={words.participants}>
      <Table
        caption={words.participants}
        rows={task.participants}
        name={(member) => `${member.role}${member.account}`}
        empty={words.nobody}
        columns={[
          { name: columns.account, cell: (member) => <Account of={member.account} as={member.role} /> },
          { name: columns.role, cell: (member) => say.role[member.role] },
          {
            name: columns.weight,
            number: true,
            cell: (member) => (member.role === 'hospital' ? member.weight : '–'),
          },
          { name: columns.joined, cell: (member) => <Ago of={member.joined_at} /> },
          { name: columns.earned, number: true, cell: (member) => <Tokens of={member.earned} /> },
          { name: columns.slashed, number: true, cell: (member) => <Tokens of={member.slashed} /> },
        ]}
      />
    </Card>
  )
}
