import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { lazy } from 'react'
import { useParams } from 'react-router'
import type { Role, Schemas } from '../api/client'
import { delegations, node as nodeOf, nodeHistory, nodeRecord } from '../api/queries'
import { profile } from '../api/profiles'
import { isAccount } from '../lib/accounts'
import { formatScore } from '../lib/amounts'
import { isRole } from '../lib/enums'
import { Decisions, useFound } from '../parts/decision'
import { Loaded } from '../parts/query'
import {
  Account,
  Ago,
  Card,
  Crumbs,
  Facts,
  Fault,
  Later,
  Loading,
  OnDemand,
  Page,
  PhaseBadge,
  Reason,
  TaskLink,
  Tokens,
} from '../parts/basics'
import { AmountsChart, ChartRoom, WorthChart } from '../parts/charts'
import { Exact } from '../parts/exact'
import { ListedTable, TableCard } from '../parts/table'
import { Watch } from '../parts/watch'
import { PaidTo } from '../parts/withdrawal'
import { Who } from '../parts/who'
import * as say from '../strings'
import Missing from './missing'

const Acting = lazy(() => import('../wallet/withdrawal'))
const Delegate = lazy(() => import('../wallet/delegate'))
const words = say.node
const { columns } = say

export default function NodePage() {
  const { node, role } = useParams()
  if (!node || !isAccount(node) || !isRole(role)) return <Missing />
  return (
    <Loaded query={nodeOf(node, role)}>
      {(found) => (
        <Page
          title={say.role[role]}
          lead={<Exact of={found.node} as="address" />}
          crumbs={<Crumbs role={role} />}
          beside={<Watch of={{ node: found.node }} />}
        >
          <Body of={found} role={role} />
        </Page>
      )}
    </Loaded>
  )
}

function Body({ of, role }: { of: Schemas['Node']; role: Role }) {
  const { node } = of
  const { found, error } = useFound([node], role)
  const { isPending } = useQuery(profile(node))
  return (
    <>
      <Who of={node} />
      {found[0] ? <Decisions of={found[0]} /> : error ? <Fault error={error} /> : <Loading isTall />}
      <Later after={!isPending && (found[0] !== null || error !== null)}>
        <Card title={say.delegate.title}>
          <OnDemand open={say.delegate.open} isMain key={node + role}>
            <Delegate node={of} />
          </OnDemand>
        </Card>
        <Later>
          <Past node={node} role={role} />
        </Later>
        <Later>
          <Stake of={of} />
          <div className="columns">
            <TableCard
              title={words.slashes}
              rows={of.slash_history}
              keyOf={(slash) => `${slash.block}-${slash.log_index}`}
              empty={words.noSlashes}
              columns={[
                { text: columns.task, of: ({ task, round }) => <TaskLink task={task} round={round} /> },
                { tokens: columns.amount, of: (slash) => slash.amount },
                { text: columns.why, of: (slash) => <Reason of={slash.reason} /> },
                { text: columns.time, of: (slash) => <Ago of={slash.time} /> },
              ]}
            />
            <TableCard
              title={words.tasks}
              rows={of.task_history}
              keyOf={(one) => one.task}
              empty={words.noTasks}
              columns={[
                { text: columns.task, of: (one) => <TaskLink task={one.task} /> },
                { text: columns.phase, of: (one) => <PhaseBadge phase={one.phase} /> },
                { tokens: columns.earned, of: (one) => one.earned },
                ...(of.task_history.some((one) => one.ranks)
                  ? [{ text: words.ranks, of: (one: Schemas['NodeTask']) => ranksOf(one) }]
                  : []),
                { text: columns.joined, of: (one) => <Ago of={one.joined_at} /> },
              ]}
            />
          </div>
        </Later>
        <Later>
          <Card title={words.delegators}>
            <ListedTable
              query={delegations({ node, role, limit: 25 })}
              caption={words.delegators}
              keyOf={(one) => one.delegator}
              empty={words.noDelegators}
              columns={[
                { text: columns.delegator, of: (one) => <Account of={one.delegator} /> },
                { tokens: columns.worth, of: (one) => one.worth },
                { text: columns.since, of: (one) => <Ago of={one.since} /> },
              ]}
            />
          </Card>
        </Later>
      </Later>
    </>
  )
}

/** A trainer's results in an arena. */
function ranksOf({ ranks }: Schemas['NodeTask']) {
  return ranks ? words.ranked(ranks.best, ranks.firsts, ranks.rounds) : ''
}

function Stake({ of }: { of: Schemas['Node'] }) {
  const { withdrawal_address: current, next_withdrawal_address: next, next_withdrawal_at: nextAt } = of
  const payee = { current, next, nextAt: nextAt ?? 0 }
  return (
    <Card title={words.stake} means={words.stakeMeans}>
      <Facts
        of={[
          [words.stake, <Tokens key="stake" of={of.assets} />],
          [columns.locked, <Tokens key="locked" of={of.locked} />],
          [words.free, <Tokens key="free" of={of.free} />],
          [columns.rewarded, <Tokens key="rewarded" of={of.rewarded} />],
          [columns.slashed, <Tokens key="burnt" of={of.burnt} />],
          [say.withdrawal.title, <PaidTo key="payee" of={payee} />],
        ]}
      />
      {payee.current && (
        <OnDemand open={say.withdrawal.open}>
          <Acting node={of} />
        </OnDemand>
      )}
    </Card>
  )
}

/** The node's record, and its charts. */
function Past({ node, role }: { node: string; role: Role }) {
  const { data: changes } = useInfiniteQuery(nodeHistory(node, role))
  const { data: found } = useQuery(nodeRecord(node, role))
  return (
    <>
      {found && <RecordCard of={found} role={role} />}
      <div className="columns">
        <Card title={say.record.stake}>
          <AmountsChart caption={say.record.stake} of={found?.periods ?? []} series={[[words.stake, 'assets']]} />
        </Card>
        <Card title={say.record.rewards}>
          <AmountsChart
            caption={say.record.rewards}
            of={found?.periods ?? []}
            series={[
              [columns.rewarded, 'rewarded'],
              [columns.slashed, 'burnt'],
            ]}
          />
        </Card>
      </div>
      <Card title={words.history}>
        {changes ? <WorthChart of={changes.pages.flatMap((page) => page.items)} /> : <ChartRoom />}
      </Card>
    </>
  )
}

function RecordCard({ of, role }: { of: Schemas['Record']; role: Role }) {
  const its = say.record
  const { accepted, cohort_median: median, all_median: all, distance, decoys_passed: passed } = of
  const judged = accepted + of.rejected
  const tested = passed + of.decoys_failed
  return (
    <Card title={its.title} means={of.rounds ? its.means(of.rounds) : its.none}>
      <Facts
        of={[
          ...of.deadlines.map((one) => [its.duty[one.duty], its.outOf(one.made, one.due)] as const),
          ...(role === 'voter'
            ? ([
                [its.seats, of.seats],
                [its.distance, distance === null ? '–' : formatScore(distance).replace('+', '')],
                [its.decoys, its.outOf(passed, tested)],
              ] as const)
            : ([[its.accepted[role], its.outOf(accepted, judged)]] as const)),
          ...(median !== null && all !== null
            ? ([[its.median, `${formatScore(median)}, ${its.allMedian(formatScore(all))}`]] as const)
            : []),
          [its.lastAct, of.last_act === null ? '–' : <Ago key="act" of={of.last_act} />],
        ]}
      />
    </Card>
  )
}
