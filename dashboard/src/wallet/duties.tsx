/** An account's duties, tasks and payments, as the API has them. */
import { useQueries, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Address } from 'viem'
import { ApiUnreachable, type Role } from '../api/client'
import { node as nodeOf, nodeRecord, payments, rolesOf, round as roundOf, task as taskOf } from '../api/queries'
import { formatBps, formatTokens } from '../lib/amounts'
import { dutiesOf, memberOf, type Duty, type Part } from '../lib/duties'
import {
  Ago,
  Card,
  Fault,
  Figure,
  Kind,
  Notice,
  PhaseBadge,
  Reason,
  TaskLink,
  Time,
  Tokens,
  useNow,
} from '../parts/basics'
import { ListedTable, TableCard } from '../parts/table'
import { NamedTask } from '../parts/tasks'
import * as say from '../strings'

const words = say.desk
const { columns } = say
const TASKS = 20 // the most of each role: each is a query

interface NodeDesk {
  account: Address
  busy: boolean
  release: (task: number) => void
}

/** `children` stand between the next duty and the lists. */
export function Duties({ roles, children, ...desk }: { roles: readonly Role[]; children: ReactNode } & NodeDesk) {
  const { account } = desk
  const { parts, failed } = useParts(account, roles)
  if (failed instanceof ApiUnreachable && parts.length === 0) {
    return (
      <>
        <Notice kind="wait">{words.noApi}</Notice>
        {children}
      </>
    )
  }
  return (
    <>
      {failed && <Fault error={failed} />}
      <Next account={account} parts={parts} roles={roles} />
      {children}
      <ToDo account={account} parts={parts} />
      <Tasks parts={parts} {...desk} />
      <Card title={words.payments}>
        <ListedTable
          query={payments({ account, limit: 25 })}
          caption={words.payments}
          keyOf={(one) => `${one.block}-${one.log_index}`}
          empty={words.noPayments}
          columns={[
            { text: columns.time, of: (one) => <Time of={one.time} /> },
            { text: columns.kind, of: (one) => <Kind of={one.kind} /> },
            { text: columns.role, of: (one) => (one.role ? say.role[one.role] : '') },
            { tokens: columns.amount, of: (one) => one.amount },
            { text: columns.source, of: ({ task, round }) => <TaskLink task={task} round={round} /> },
            { text: columns.why, of: (one) => <Reason of={one.reason} /> },
          ]}
        />
      </Card>
    </>
  )
}

/** The account's parts in tasks, the latest task first, each with the task's present round. */
function useParts(account: Address, roles: readonly Role[]): { parts: Part[]; failed: Error | null } {
  const { data: known, error } = useQuery(rolesOf(account)) // without a node that the API has not indexed yet
  const nodes = useQueries({
    queries: roles.map((role) => ({
      ...nodeOf(account, role),
      enabled: known?.items.some((one) => one.role === role) ?? false,
    })),
  })
  const joined = nodes.flatMap(({ data }) =>
    data ? data.task_history.slice(0, TASKS).map((one) => ({ role: data.role, task: one.task })) : [],
  )
  const tasks = useQueries({ queries: [...new Set(joined.map((one) => one.task))].map(taskOf) })
  const running = tasks.flatMap(({ data }) =>
    data && data.phase !== 'ended' && data.phase !== 'joining' ? [data] : [],
  )
  const rounds = useQueries({ queries: running.map((one) => roundOf(one.task, one.round)) })
  const parts = joined.flatMap(({ role, task: number }): Part[] => {
    const task = tasks.find(({ data }) => data?.task === number)?.data
    if (!task) return []
    const round = rounds.find(({ data }) => data?.task === number && data.round === task.round)?.data
    return [{ role, task, round: round ?? null }]
  })
  const errors = [error, ...[...nodes, ...tasks, ...rounds].map((one) => one.error)]
  return {
    parts: parts.toSorted((one, other) => other.task.task - one.task.task),
    failed: errors.find((one) => one !== null) ?? null,
  }
}

/** The next duty, and each role's last one, as the chain shows them. */
function Next({ account, parts, roles }: { account: Address; parts: readonly Part[]; roles: readonly Role[] }) {
  const [next] = dutiesOf(parts, account, useNow())
  return (
    <dl className="figures next">
      <Figure
        name={words.next}
        value={
          next ? next.isOverdue ? <span className="bad">{words.overdue}</span> : <Ago of={next.by} /> : words.noDuty
        }
        beside={
          next && (
            <>
              {words.deed[next.deed]}, <TaskLink task={next.task} round={next.round} />
            </>
          )
        }
      />
      {roles.map((role) => (
        <LastDuty key={role} account={account} role={role} />
      ))}
    </dl>
  )
}

function LastDuty({ account, role }: { account: Address; role: Role }) {
  const { data: known } = useQuery(rolesOf(account))
  const isKnown = known?.items.some((one) => one.role === role) ?? false // a new node is on the chain first
  const { data } = useQuery({ ...nodeRecord(account, role), enabled: isKnown })
  if (!data) return null
  const { last_duty: last, last_act: act } = data
  return (
    <Figure
      name={words.alive(say.role[role])}
      value={
        last ? (
          <span className={last.made ? 'good' : 'bad'}>{last.made ? words.answered : words.missed}</span>
        ) : (
          words.noneDue
        )
      }
      beside={
        <>
          {last && (
            <>
              {say.record.duty[last.duty]}, <TaskLink task={last.task} round={last.round} />
              <br />
            </>
          )}
          {act !== null && (
            <>
              {words.lastAct} <Ago of={act} />
            </>
          )}
        </>
      }
    />
  )
}

function ToDo({ account, parts }: { account: Address; parts: readonly Part[] }) {
  const now = useNow()
  return (
    <TableCard
      title={words.duties}
      means={words.dutiesMeans}
      rows={dutiesOf(parts, account, now)}
      keyOf={(one) => `${one.task}-${one.role}`}
      empty={words.nothingToDo}
      columns={[
        {
          text: columns.duty,
          of: (one) => (
            <>
              {words.deed[one.deed]}
              <br />
              <span className="small">
                <TaskLink task={one.task} round={one.round} />
              </span>
            </>
          ),
        },
        { text: columns.role, of: (one) => say.role[one.role] },
        {
          text: columns.deadline,
          of: (one) => (one.isOverdue ? <span className="bad">{words.overdue}</span> : <Ago of={one.by} />),
        },
        { text: columns.otherwise, of: (one) => <Otherwise of={one} /> },
      ]}
    />
  )
}

/** The loss of a duty that is not done. */
function Otherwise({ of: { slash, round, deed } }: { of: Duty }) {
  const without = round === 0 ? words.withoutStatistics : words.without[deed]
  if (!slash) return without
  return (
    <>
      <span className="bad">{words.slash(formatBps(slash.bps), formatTokens(slash.amount))}</span>
      <br />
      <span className="small soft">{without}</span>
    </>
  )
}

function Tasks({ account, parts, busy, release }: { parts: readonly Part[] } & NodeDesk) {
  return (
    <TableCard
      title={words.tasks}
      means={parts.length >= TASKS ? words.someTasks(TASKS) : undefined}
      rows={parts}
      keyOf={(one) => `${one.task.task}-${one.role}`}
      empty={words.noTasks}
      columns={[
        { text: columns.task, of: ({ task }) => <NamedTask of={task} /> },
        { text: columns.role, of: (one) => say.role[one.role] },
        { text: columns.phase, of: ({ task }) => <PhaseBadge phase={task.phase} /> },
        { number: columns.round, of: ({ task }) => say.tasks.ofRounds(task.round, task.terms.rounds) },
        { tokens: columns.earned, of: (one) => memberOf(one, account)?.earned },
        { tokens: columns.slashed, of: (one) => memberOf(one, account)?.slashed },
        {
          number: columns.bond,
          of: (one) => {
            const bond = memberOf(one, account)?.bond ?? '0'
            const { task, phase } = one.task
            if (phase !== 'ended' || bond === '0') return <Tokens of={bond} />
            return (
              <button type="button" disabled={busy} title={words.releaseOf(task)} onClick={() => release(task)}>
                {words.release} <Tokens of={bond} />
              </button>
            )
          },
        },
      ]}
    />
  )
}
