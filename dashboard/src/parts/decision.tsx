/** The facts by which a delegator decides: one list for the page of a node and for comparisons. */
import { useQueries, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Role, Schemas } from '../api/client'
import { network, node as nodeOf, nodeRecord } from '../api/queries'
import { bpsOf, formatBps, formatMillionths } from '../lib/amounts'
import { formatDuration } from '../lib/times'
import { yieldOf } from '../lib/yields'
import * as say from '../strings'
import { Ago, Figure, Tokens, useLater } from './basics'

const words = say.decide
const DAY = 86_400
/** The most of a bond that one fault takes: of an aggregator's a half (`TaskRules.sol`). */
const WORST_BPS: Record<Role, number> = { hospital: 10_000, voter: 10_000, aggregator: 5_000 }

export interface Found {
  node: Schemas['Node']
  record: Schemas['Record']
  /** Seconds; null if the server has no chain node. */
  unbonding: number | null
}

/** What is known of nodes; null for one that has not loaded. */
export function useFound(nodes: readonly string[], role: Role): { found: (Found | null)[]; error: Error | null } {
  const { data: about, error: unknown } = useQuery(network())
  const at = useQueries({ queries: nodes.map((one) => nodeOf(one, role)) })
  const isDue = useLater(true) // a slow phone takes seven milliseconds for each question
  const records = useQueries({ queries: nodes.map((one) => ({ ...nodeRecord(one, role), enabled: isDue })) })
  const found = nodes.map((_, n): Found | null => {
    const [node, record] = [at[n]?.data, records[n]?.data]
    return node && record && about ? { node, record, unbonding: about.unbonding_seconds } : null
  })
  return { found, error: [...at, ...records].find((one) => one.error)?.error ?? unknown }
}

export interface Decision {
  name: string
  value: ReactNode
  beside?: ReactNode
}

export function New() {
  return (
    <span className="badge wait" title={words.newMeans}>
      {words.isNew}
    </span>
  )
}

export function decisionsOf({ node, record, unbonding }: Found): Decision[] {
  const locked = formatBps(bpsOf(BigInt(node.locked), BigInt(node.assets)))
  const due = record.deadlines.reduce((sum, one) => sum + one.due, 0)
  const made = record.deadlines.reduce((sum, one) => sum + one.made, 0)
  const notice = unbonding === null ? words.period : formatDuration(unbonding)
  const { next_commission_bps: next, next_commission_at: nextAt } = node
  return [
    rateOf(node, 30),
    rateOf(node.quarter, 90),
    { name: words.worst, value: words.all, beside: words.locked(locked, formatBps(WORST_BPS[node.role])) },
    {
      name: words.slashes,
      value: node.slashes ? <span className="bad">{node.slashes} ×</span> : words.never,
      beside: node.slashes ? (
        <>
          <Tokens of={node.burnt} />
          {record.slashes.map((one) => `; ${one.count} × ${say.reason[one.reason]}`).join('')}
        </>
      ) : undefined,
    },
    {
      name: words.met,
      value: due ? <span className={made < due ? 'bad' : ''}>{words.metOf(made, due)}</span> : words.noneDue,
      beside: due ? words.inRounds(record.rounds) : undefined,
    },
    {
      name: words.age,
      value: (
        <>
          {node.staked_at === null ? words.unstaked : <Ago of={node.staked_at} />} {node.is_new && <New />}
        </>
      ),
      beside: words.paid(node.paid_rounds),
    },
    {
      name: say.columns.commission,
      value: formatBps(node.commission_bps),
      beside:
        next !== null && nextAt !== null ? (
          <>
            {formatBps(next)} <Ago of={nextAt} />
          </>
        ) : (
          words.commissionCap(notice)
        ),
    },
    {
      name: words.own,
      value: <Tokens of={node.own} />,
      beside: words.ownPart(formatBps(bpsOf(BigInt(node.own), BigInt(node.assets)))),
    },
    { name: say.columns.delegators, value: node.delegators, beside: <Tokens of={node.assets} /> },
  ]
}

/** `days`: of the yield. */
function rateOf(node: Schemas['YieldOver'], days: number): Decision {
  const found = yieldOf(node)
  const { net, since, until } = node.realised_yield
  const [shown, duration] = [formatMillionths(net, true), formatDuration(until - since)]
  if (!found) return { name: words.rate(days), value: <New />, beside: words.soFar(shown, duration) }
  const over = found.seconds < days * DAY ? `${words.over(duration)}; ` : ''
  return {
    name: words.rate(days),
    value: <span className={net < 0 ? 'bad' : ''}>{shown}</span>,
    beside: over + (found.aYear === null ? '' : words.aYear(formatMillionths(found.aYear, true))),
  }
}

export function Decisions({ of }: { of: Found }) {
  return (
    <section aria-label={words.title}>
      <dl className="figures">
        {decisionsOf(of).map((one) => (
          <Figure key={one.name} {...one} />
        ))}
      </dl>
    </section>
  )
}
