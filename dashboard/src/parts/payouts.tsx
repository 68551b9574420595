/** Those whom a round paid and did not pay, and each member's part in the whole task. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import { payments, round as roundOf, symbol, task as taskOf } from '../api/queries'
import { formatShare } from '../lib/amounts'
import { payByRound, shareOf } from '../lib/contribution'
import { outcomeOf, unpaidOf, type Unpaid } from '../lib/unpaid'
import * as say from '../strings'
import { payouts as words } from '../strings/payouts'
import { Account, Fault, Kind, Reason, Unfold } from './basics'
import { Loaded } from './query'
import { TableCard } from './table'

const ROUNDS_SHOWN = 4
const REASONS_SHOWN = 12
const { columns } = say

/** A sentence for each member that a round did not pay. */
export function NotPaid({ round, task }: { round: Schemas['Round']; task: Schemas['Task'] }) {
  const all = unpaidOf(round, task)
  const [shown, rest] = [all.slice(0, REASONS_SHOWN), all.slice(REASONS_SHOWN)]
  return (
    <>
      {all.length > 0 && <Sentences of={shown} round={round.round} />}
      {rest.length > 0 && (
        <Unfold title={words.more(rest.length)}>
          <Sentences of={rest} round={round.round} />
        </Unfold>
      )}
    </>
  )
}

function Sentences({ of, round }: { of: readonly Unpaid[]; round: number }) {
  return (
    <ul className="reasons">
      {of.map(({ member: { account, role }, why }) => (
        <li key={role + account}>
          {say.role[role]} <Account of={account} as={role} />
          {words.wasNotPaid(round)}
          {why}
        </li>
      ))}
    </ul>
  )
}

/** The page of a round: its payments, and the reasons of those without one. */
export function Payouts({ of }: { of: Schemas['Round'] }) {
  const { data: task, error, refetch } = useQuery(taskOf(of.task))
  return (
    <TableCard
      title={words.title}
      means={words.means}
      rows={of.payments}
      keyOf={(payment) => `${payment.block}-${payment.log_index}`}
      empty={say.round.noPayments}
      columns={[
        { text: columns.kind, of: ({ kind }) => <Kind of={kind} /> },
        { text: columns.account, of: ({ account, role }) => <Account of={account} as={role} /> },
        { tokens: columns.amount, of: (payment) => payment.amount },
        { text: columns.role, of: ({ role }) => (role ? say.role[role] : '') },
        ...(of.payments.some(({ reason }) => reason)
          ? [{ text: columns.why, of: ({ reason }: Schemas['Payment']) => <Reason of={reason} /> }]
          : []),
      ]}
    >
      {error && <Fault error={error} retry={() => void refetch()} />}
      {task && <NotPaid round={of} task={task} />}
    </TableCard>
  )
}

/** The page of a task: shares of the accepted weight, pay by round, and the reasons of the latest round that is over. */
export function Contribution({ task, latest }: { task: Schemas['Task']; latest: number | undefined }) {
  const { data, error, refetch } = useInfiniteQuery(payments({ task: task.task, kind: 'reward', limit: 200 }))
  const [first] = data?.pages ?? []
  const pay = payByRound(first?.items ?? [], first?.next === null, ROUNDS_SHOWN)
  const members = task.participants
  return (
    <TableCard
      title={words.contribution}
      means={words.contributionMeans(pay.length)}
      rows={members}
      keyOf={(member) => member.role + member.account}
      empty={say.task.nobody}
      columns={[
        { text: columns.account, of: (member) => <Account of={member.account} as={member.role} /> },
        { text: columns.role, of: (member) => say.role[member.role] },
        { number: columns.weight, of: (member) => (member.role === 'hospital' ? member.weight : '–') },
        {
          number: words.share,
          of: (member) => {
            const share = shareOf(member, members)
            return share === null ? '–' : formatShare(share)
          },
        },
        ...pay.map(({ round, of }) => ({ tokens: words.ofRound(round), of })),
        { tokens: columns.earned, of: (member) => member.earned },
        { tokens: columns.slashed, of: (member) => member.slashed },
      ]}
    >
      {error && <Fault error={error} retry={() => void refetch()} />}
      {latest !== undefined && <Latest task={task} round={latest} />}
    </TableCard>
  )
}

function Latest({ task, round }: { task: Schemas['Task']; round: number }) {
  const { data: token } = useQuery(symbol())
  return (
    <Loaded query={roundOf(task.task, round)}>
      {(found) => (
        <>
          <h3>
            <Link to={`/tasks/${task.task}/rounds/${round}`}>{words.lastRound(round)}</Link>
          </h3>
          <p>{outcomeOf(found, token)}</p>
          <NotPaid round={found} task={task} />
        </>
      )}
    </Loaded>
  )
}
