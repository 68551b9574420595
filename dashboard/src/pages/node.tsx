import { useInfiniteQuery } from '@tanstack/react-query'
import { lazy } from 'react'
import { useParams } from 'react-router'
import type { Role, Schemas } from '../api/client'
import { delegations, node as nodeOf, nodeHistory } from '../api/queries'
import { isAccount } from '../lib/accounts'
import { formatBps, formatMillionths } from '../lib/amounts'
import { isRole } from '../lib/enums'
import { formatTime } from '../lib/times'
import { Loaded } from '../parts/query'
import {
  Account,
  Ago,
  Card,
  Crumbs,
  Facts,
  Figure,
  OnDemand,
  Page,
  PhaseBadge,
  Reason,
  TaskLink,
  Tokens,
} from '../parts/basics'
import { WorthChart } from '../parts/charts'
import { Exact } from '../parts/exact'
import { ListedTable, TableCard } from '../parts/table'
import { Who } from '../parts/who'
import { say } from '../strings'
import Missing from './missing'

const Delegate = lazy(() => import('../wallet/delegate'))
const words = say.node
const { columns } = say

export default function NodePage() {
  const { node, role } = useParams()
  if (!node || !isAccount(node) || !isRole(role)) return <Missing />
  return (
    <Loaded query={nodeOf(node, role)}>
      {(found) => (
        <Page title={say.role[role]} lead={<Exact of={found.node} as="address" />} crumbs={<Crumbs role={role} />}>
          <Who of={found.node} />
          <Figures of={found} />
          <Card title={say.delegate.title}>
            <OnDemand open={say.delegate.open} isMain key={node + role}>
              <Delegate node={found} />
            </OnDemand>
          </Card>
          <Worth node={node} role={role} />
          <div className="columns">
            <TableCard
              title={words.slashes}
              rows={found.slash_history}
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
              rows={found.task_history}
              keyOf={(one) => one.task}
              empty={words.noTasks}
              columns={[
                { text: columns.task, of: (one) => <TaskLink task={one.task} /> },
                { text: columns.phase, of: (one) => <PhaseBadge phase={one.phase} /> },
                { text: columns.joined, of: (one) => <Ago of={one.joined_at} /> },
              ]}
            />
          </div>
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
        </Page>
      )}
    </Loaded>
  )
}

function Figures({ of }: { of: Schemas['Node'] }) {
  const { next_commission_bps: next, next_commission_at: nextAt } = of
  return (
    <>
      <dl className="figures">
        <Figure name={words.stake} value={<Tokens of={of.assets} />} />
        <Figure
          name={columns.yield}
          value={formatMillionths(of.realised_yield.net, true)}
          beside={`${words.since} ${formatTime(of.realised_yield.since)}`}
        />
        <Figure
          name={columns.commission}
          value={formatBps(of.commission_bps)}
          beside={next !== null && nextAt !== null ? words.next(formatBps(next), formatTime(nextAt)) : undefined}
        />
        <Figure name={columns.rewarded} value={<Tokens of={of.rewarded} />} />
        <Figure name={columns.slashed} value={<Tokens of={of.burnt} />} beside={`${of.slashes} ×`} />
      </dl>
      <Card title={words.stake} means={words.stakeMeans}>
        <Facts
          of={[
            [columns.locked, <Tokens key="locked" of={of.locked} />],
            [words.free, <Tokens key="free" of={of.free} />],
            [words.paid, of.rounds],
            [columns.delegators, of.delegators],
          ]}
        />
      </Card>
    </>
  )
}

function Worth({ node, role }: { node: string; role: Role }) {
  const { data } = useInfiniteQuery(nodeHistory(node, role))
  return (
    <Card title={words.history}>
      <WorthChart of={data?.pages.flatMap((page) => page.items) ?? []} />
    </Card>
  )
}
