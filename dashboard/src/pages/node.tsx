import { useInfiniteQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { Link, useParams } from 'react-router'
import type { Role, Schemas } from '../api/client'
import { delegations, node as nodeOf, nodeHistory } from '../api/queries'
import { isAccount } from '../lib/accounts'
import { isRole } from '../lib/enums'
import { formatBps, formatMillionths } from '../lib/amounts'
import { shareWorths } from '../lib/history'
import { formatTime } from '../lib/times'
import { Asked, Listed } from '../parts/asked'
import { Account, Ago, Card, Crumbs, Facts, Figure, Loading, Page, PhaseBadge, Tokens } from '../parts/basics'
import { Table } from '../parts/table'
import { say } from '../strings'
import Missing from './missing'

const Delegate = lazy(() => import('../wallet/delegate'))
const Chart = lazy(() => import('../parts/chart'))
const words = say.node

export default function NodePage() {
  const { node, role } = useParams()
  if (!node || !isAccount(node) || !isRole(role)) return <Missing />
  return (
    <Asked query={nodeOf(node, role)}>
      {(found) => (
        <Page
          title={words.title(say.role[role])}
          lead={<code className="wrap">{found.node}</code>}
          crumbs={<Crumbs to={[[`/nodes?role=${role}`, say.roles[role]]]} />}
        >
          <Figures of={found} />
          <Backing of={found} key={node + role} />
          <Worth node={node} role={role} />
          <div className="columns">
            <Slashes of={found} />
            <Tasks of={found} />
          </div>
          <Delegators node={node} role={role} />
        </Page>
      )}
    </Asked>
  )
}

function Backing({ of }: { of: Schemas['Node'] }) {
  const [open, setOpen] = useState(false)
  return (
    <Card title={say.delegate.title}>
      {open ? (
        <Suspense fallback={<Loading />}>
          <Delegate node={of} />
        </Suspense>
      ) : (
        <div>
          <button type="button" className="main" onClick={() => setOpen(true)}>
            {say.delegate.open}
          </button>
        </div>
      )}
    </Card>
  )
}

function Figures({ of }: { of: Schemas['Node'] }) {
  return (
    <>
      <dl className="figures">
        <Figure name={words.stake} value={<Tokens of={of.assets} />} />
        <Figure
          name={words.yield}
          value={formatMillionths(of.realised_yield.net, true)}
          beside={`${words.since} ${formatTime(of.realised_yield.since)}`}
        />
        <Figure
          name={words.commission}
          value={formatBps(of.commission_bps)}
          beside={
            of.next_commission_bps !== null && of.next_commission_at !== null
              ? words.next(formatBps(of.next_commission_bps), formatTime(of.next_commission_at))
              : undefined
          }
        />
        <Figure name={say.nodes.columns.rewarded} value={<Tokens of={of.rewarded} />} />
        <Figure
          name={say.nodes.columns.slashes}
          value={<Tokens of={of.burnt} />}
          beside={`${of.slashes} ×`}
        />
      </dl>
      <Card title={words.stake} means={words.stakeMeans}>
        <Facts
          of={[
            [say.nodes.columns.locked, <Tokens key="locked" of={of.locked} />],
            [words.free, <Tokens key="free" of={of.free} />],
            [words.paid, of.rounds],
            [say.nodes.columns.delegators, of.delegators],
          ]}
        />
      </Card>
    </>
  )
}

function Worth({ node, role }: { node: string; role: Role }) {
  const { data } = useInfiniteQuery(nodeHistory(node, role))
  const worths = shareWorths(data?.pages.flatMap((page) => page.items) ?? [])
  return (
    <Card title={words.history}>
      <Suspense fallback={<div className="chart-room" />}>
        <Chart
          caption={words.history}
          across={{
            name: say.nodes.columns.rounds,
            values: worths.map((one) => one.time),
            shown: formatTime,
          }}
          series={[{ name: words.history, values: worths.map((one) => one.worth), isStep: true }]}
          shown={(worth) => (worth / 1e6).toFixed(4)}
          empty={words.noHistory}
          flat={words.flat}
        />
      </Suspense>
    </Card>
  )
}

function Slashes({ of }: { of: Schemas['Node'] }) {
  const { columns } = words
  return (
    <Card title={words.slashes}>
      <Table
        caption={words.slashes}
        rows={of.slash_history}
        name={(slash) => `${slash.block}-${slash.log_index}`}
        empty={words.noSlashes}
        columns={[
          {
            name: columns.task,
            cell: (slash) => (
              <Link
                to={
                  slash.round === null ? `/tasks/${slash.task}` : `/tasks/${slash.task}/rounds/${slash.round}`
                }
              >
                {say.round.title(slash.round ?? 0, slash.task)}
              </Link>
            ),
          },
          { name: columns.amount, number: true, cell: (slash) => <Tokens of={slash.amount} /> },
          { name: columns.why, cell: (slash) => (slash.reason ? say.reason[slash.reason] : '') },
          { name: columns.when, cell: (slash) => <Ago of={slash.time} /> },
        ]}
      />
    </Card>
  )
}

function Tasks({ of }: { of: Schemas['Node'] }) {
  const { columns } = words
  return (
    <Card title={words.tasks}>
      <Table
        caption={words.tasks}
        rows={of.task_history}
        name={(one) => one.task}
        empty={words.noTasks}
        columns={[
          {
            name: columns.task,
            cell: (one) => <Link to={`/tasks/${one.task}`}>{say.task.title(one.task)}</Link>,
          },
          { name: columns.phase, cell: (one) => <PhaseBadge phase={one.phase} /> },
          { name: columns.joined, cell: (one) => <Ago of={one.joined_at} /> },
        ]}
      />
    </Card>
  )
}

function Delegators({ node, role }: { node: string; role: Role }) {
  const { columns } = words
  return (
    <Card title={words.delegators}>
      <Listed query={delegations({ node, role, limit: 25 })}>
        {(items) => (
          <Table
            caption={words.delegators}
            rows={items}
            name={(one) => one.delegator}
            empty={words.noDelegators}
            columns={[
              { name: columns.delegator, cell: (one) => <Account of={one.delegator} /> },
              { name: columns.worth, number: true, cell: (one) => <Tokens of={one.worth} /> },
              { name: say.account.columns.since, cell: (one) => <Ago of={one.since} /> },
            ]}
          />
        )}
      </Listed>
    </Card>
  )
}
