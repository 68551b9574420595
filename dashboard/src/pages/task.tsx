import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Fragment, lazy, Suspense, type ReactNode } from 'react'
import { Link, useParams } from 'react-router'
import { BASE, type Schemas } from '../api/client'
import { models, rounds, task as taskOf } from '../api/queries'
import { formatFixed, formatScore, formatWhole } from '../lib/amounts'
import { questionOf } from '../lib/question'
import { hasModel } from '../lib/metrics'
import { membership, type AttackSuccess } from '../lib/membership'
import { InEnsembles } from '../market/sales'
import { Loaded } from '../parts/query'
import {
  Account,
  Ago,
  Card,
  Countdown,
  Crumbs,
  Facts,
  Fault,
  Figure,
  Later,
  Notice,
  OnDemand,
  OutcomeBadge,
  Page,
  PhaseBadge,
  Tokens,
} from '../parts/basics'
import { ChartRoom, ProgressChart } from '../parts/charts'
import { Course } from '../parts/course'
import { Exact } from '../parts/exact'
import { Model } from '../parts/model'
import { Contribution } from '../parts/payouts'
import { Quality } from '../parts/quality'
import { Table, TableCard } from '../parts/table'
import { Watch } from '../parts/watch'
import * as say from '../strings'
import Missing from './missing'

const Arena = lazy(() => import('../parts/arena'))
const Report = lazy(() => import('../parts/report'))
const Statistics = lazy(() => import('../parts/statistics'))
const Operate = lazy(() => import('../wallet/operate'))
const words = say.task
const { columns } = say

export default function Task() {
  const number = Number(useParams().task)
  if (!Number.isSafeInteger(number) || number < 1) return <Missing />
  return (
    <Loaded query={taskOf(number)}>
      {(task) => (
        <Page
          title={task.name ?? say.tasks.unnamed(number)}
          crumbs={<Crumbs task={number} />}
          beside={<Beside task={task} />}
          lead={<bdi>{questionOf(task.asked)}</bdi>}
        >
          {task.stopping && task.phase !== 'ended' && <Notice kind="wait">{words.stopping(task.last_round)}</Notice>}
          <Quality task={task} />
          <Lower task={task} />
        </Page>
      )}
    </Loaded>
  )
}

/** All below the model's quality: its height depends on two answers. */
function Lower({ task }: { task: Schemas['Task'] }) {
  const { isLoading } = useQuery({ ...models(task.task), enabled: hasModel(task) })
  const { isPending } = useInfiniteQuery(rounds(task.task))
  return (
    <Later after={!isLoading && !isPending}>
      <dl className="figures">
        {(['hospital', 'voter'] as const).map((role) => (
          <Figure
            key={role}
            name={say.roles[role]}
            value={task.participants.filter((one) => one.role === role).length}
            beside={words.most(task.terms[`max_${role}s`])}
          />
        ))}
        <Figure name={columns.round} value={say.tasks.ofRounds(task.round, task.rounds)} />
        {task.phase !== 'ended' && (
          <Figure name={words.deadline} value={<Countdown to={task.deadline} phase={task.phase} />} />
        )}
        <Figure name={words.pool} value={<Tokens of={task.money.pool} />} />
        <Figure name={words.left} value={<Tokens of={task.money.left} />} />
        {task.spec?.privacy && <Figure name={words.epsilon} value={task.spec.privacy.epsilon} />}
      </dl>
      {task.terms.rank_decay_bps > 0 && (
        <Later>
          <Suspense>
            <Arena task={task} />
          </Suspense>
        </Later>
      )}
      <Later>
        <Rounds task={task} />
      </Later>
      <Later>
        <Suspense>
          <Report task={task} />
        </Suspense>
        <Suspense>
          <Statistics task={task} />
        </Suspense>
      </Later>
      <Later>
        <div className="columns">
          <Money of={task.money} />
          <Privacy task={task} />
          <Spec task={task} />
        </div>
      </Later>
      <Later>
        <Card title={say.operate.title} means={say.operate.means}>
          <OnDemand open={say.operate.open}>
            <Operate task={task} />
          </OnDemand>
        </Card>
        <Model task={task} />
        {task.spec?.sale && task.phase === 'ended' && <InEnsembles task={task.task} />}
        <Card title={words.terms}>
          <details>
            <summary>{words.allTerms(Object.keys(task.terms).length)}</summary>
            <Facts
              of={Object.entries(task.terms).map(([name, value]) => [name, <code key={name}>{String(value)}</code>])}
            />
          </details>
        </Card>
      </Later>
    </Later>
  )
}

function Beside({ task }: { task: Schemas['Task'] }) {
  return (
    <>
      <PhaseBadge phase={task.phase} />
      <span>
        {columns.operator} <Account of={task.operator} />
      </span>
      <Watch of={task} />
    </>
  )
}

function Rounds({ task: whole }: { task: Schemas['Task'] }) {
  const { task, spec } = whole
  const { data, error, refetch } = useInfiniteQuery(rounds(task))
  const items = data?.pages.flatMap((page) => page.items)
  return (
    <>
      {items && <Course task={whole} rounds={items} />}
      {items && <Contribution task={whole} latest={items.find((one) => one.ended_at !== null)?.round} />}
      <Card title={words.progress} means={words.progressMeans}>
        {error && <Fault error={error} retry={() => void refetch()} />}
        {items ? <ProgressChart of={items} metric={spec?.metric} /> : !error && <ChartRoom />}
      </Card>
      {items && (
        <TableCard
          title={words.rounds}
          rows={items}
          keyOf={(one) => one.round}
          empty={words.noRounds}
          columns={[
            {
              text: columns.round,
              of: ({ round }) => (
                <Link to={`/tasks/${task}/rounds/${round}`}>
                  {round}
                  {round === 0 && ` (${words.statistics})`}
                </Link>
              ),
            },
            { text: columns.outcome, of: (one) => <OutcomeBadge of={one} /> },
            { text: columns.medians, of: (one) => one.medians.map(formatScore).join(', ') || '–' },
            {
              text: columns.accepted,
              of: ({ accepted, medians }) =>
                medians.length ? say.tasks.ofRounds(accepted.length, medians.length) : '–',
            },
            { text: columns.ended, of: (one) => (one.ended_at ? <Ago of={one.ended_at} /> : '–') },
          ]}
        />
      )}
      <Link to={`/tasks/${task}/audit`}>{words.audit}</Link>
    </>
  )
}

const MONEY = ['pool', 'rewards', 'bounties', 'refund', 'left', 'burnt', 'slashed'] as const

function Money({ of }: { of: Schemas['Money'] }) {
  return (
    <Card title={words.money}>
      <Facts of={MONEY.map((one) => [words[one], <Tokens key={one} of={of[one]} />])} />
    </Card>
  )
}

function Privacy({ task }: { task: Schemas['Task'] }) {
  if (!task.spec) return null
  const { privacy } = task.spec
  const isArena = task.terms.rank_decay_bps > 0
  return (
    <Card title={words.privacy}>
      {isArena && <p>{words.publicUpdates}</p>}
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
        !isArena && <p className="soft">{words.noPrivacy}</p>
      )}
      <Membership model={task.spec.model} epsilon={privacy?.epsilon ?? null} terms={task.terms} />
    </Card>
  )
}

function Membership(of: { model: string; epsilon: number | null; terms: Schemas['Terms'] }) {
  const hospitals = of.terms.masked ? of.terms.min_cohort_size : 1
  const successes = membership(of.model, of.epsilon, hospitals)
  const figures = ({ auc, found }: AttackSuccess['alone']) =>
    words.membershipFound(formatFixed(auc, 2), `${Math.round(100 * found)} %`)
  return (
    <>
      <h3>{words.membership}</h3>
      <p className="soft small">{words.membershipMeans(successes[0]?.alone.training.startsWith('epsilon') ?? false)}</p>
      <Table
        caption={words.membership}
        rows={successes}
        keyOf={(one) => one.rows}
        columns={[
          { number: columns.rows, of: (one) => one.rows },
          {
            number: columns.together,
            of: ({ together }) => words.membershipSum(figures(together), together.hospitals),
          },
          { number: columns.alone, of: (one) => figures(one.alone) },
        ]}
      />
    </>
  )
}

/** Names in a row, each with its own writing direction. */
function Names({ of }: { of: readonly string[] }) {
  return of.map((one, index) => (
    <Fragment key={one}>
      {index > 0 && ', '}
      <bdi>{one}</bdi>
    </Fragment>
  ))
}

/** The numbers of the tasks that train one model, each a link to its page but this one's. */
function Shards({ of, own }: { of: readonly number[]; own: number }) {
  return of.map((one, index) => (
    <Fragment key={one}>
      {index > 0 && ', '}
      {one === own ? one : <Link to={`/tasks/${one}`}>{one}</Link>}
    </Fragment>
  ))
}

function Sale({ task, terms }: { task: number; terms: Schemas['SaleSpec'] }) {
  return (
    <>
      {words.saleTerms(terms)} <Link to={`/models/${task}`}>{words.modelPage}</Link>
    </>
  )
}

function Spec({ task }: { task: Schemas['Task'] }) {
  const { spec } = task
  const facts: (readonly [string, ReactNode])[] = [
    [words.operator, <Account key="operator" of={task.operator} />],
    [words.aggregator, <Account key="aggregator" of={task.aggregator} as="aggregator" />],
  ]
  if (task.shards.length > 1) facts.push([words.shards, <Shards key="shards" of={task.shards} own={task.task} />])
  if (spec) {
    facts.push(
      [words.model, spec.model],
      [words.parameters, formatWhole(spec.parameters)],
      [words.coordinates, formatWhole(spec.coordinates)],
      [words.data, spec.data],
      spec.classes.length
        ? [words.classes, <Names key="classes" of={spec.classes} />]
        : [words.question, <bdi key="question">{spec.question}</bdi>],
      [words.metric, spec.metric],
      [words.blobs, spec.update_blobs],
      [words.lanes, formatWhole(spec.lanes_per_update)],
    )
    if (spec.sale) facts.push([words.sale, <Sale key="sale" task={task.task} terms={spec.sale} />])
  }
  return (
    <Card title={words.spec}>
      <Facts of={facts} />
      {task.spec_fault && (
        <p className="bad">
          <bdi>{task.spec_fault}</bdi>
        </p>
      )}
      <p className={spec ? '' : 'soft'}>
        {spec ? <a href={`${BASE}/v1/artifacts/files/${task.spec_hash}`}>{words.download}</a> : words.specUnknown}{' '}
        <Exact of={task.spec_hash} isShort />
      </p>
    </Card>
  )
}
