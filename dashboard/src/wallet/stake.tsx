/** An account's own nodes, their stake and commission, and the registration of further ones. */
import { useState, type ReactNode } from 'react'
import { Link } from 'react-router'
import type { Address } from 'viem'
import type { Role } from '../api/client'
import { formatBps, parsePercent } from '../lib/amounts'
import { numberOf } from '../lib/enums'
import { formatDuration, formatTime } from '../lib/times'
import { Card, Facts, Tokens } from '../parts/basics'
import { Radios } from '../parts/choice'
import { Command } from '../parts/command'
import { Field, readAmount } from '../parts/field'
import { PaidTo } from '../parts/withdrawal'
import * as say from '../strings'
import type { Own, OwnNode as Node } from './own'
import { SetAddress } from './withdrawal'

const words = say.desk
const AMOUNTS = ['active', 'own', 'free', 'locked', 'unbonding'] as const

/** `send` calls the staking contract; where an amount goes along, after its approval. */
export interface Staking {
  balance: bigint
  busy: boolean
  /** Typed texts, which outlast a form that leaves the page while the wallet has another account selected. */
  drafts: Map<string, string>
  reset: () => void
  send: (functionName: string, amount: bigint, ...args: readonly unknown[]) => Promise<unknown>
}

export function OwnNode({ account, own, node, ...staking }: { account: Address; own: Own; node: Node } & Staking) {
  const { role, next } = node
  const command = words.command[role]
  const hasKey = role === 'voter' && own.hasVoterKey
  const nextCommission = next ? `, ${say.node.next(formatBps(next.bps), formatTime(next.at))}` : ''
  return (
    <Card title={say.role[role]}>
      <Facts
        of={[
          ...AMOUNTS.map((one) => [words.amounts[one], <Tokens key={one} of={node[one]} />] as const),
          [words.commission, formatBps(node.commissionBps) + nextCommission],
          [say.withdrawal.title, <PaidTo key="payee" of={node.payee} />],
          ...(role === 'voter' ? [[words.key, hasKey ? words.keyThere : words.keyMissing] as const] : []),
        ]}
      />
      <div className="columns">
        <AddStake {...staking} account={account} role={role} />
        <Commission {...staking} account={account} role={role} period={own.unbondingPeriod} />
      </div>
      {node.payee.current === null && (
        <SetAddress
          node={account}
          role={role}
          payee={node.payee}
          period={own.unbondingPeriod}
          busy={staking.busy}
          send={(call) => staking.send(call.functionName, 0n, ...call.args)}
        />
      )}
      {!hasKey && (
        <section className="stack">
          <h3>{command.title}</h3>
          <p className="soft small">{command.means}</p>
          <Command of={command.command} />
        </section>
      )}
      <p className="tools">
        <Link to={`/nodes/${account}/${role}`}>{words.page}</Link>
        <Link to="/portfolio">{words.undelegate}</Link>
      </p>
    </Card>
  )
}

/** A text, and how to set it. */
function useDraft(drafts: Map<string, string>, key: string): [string, (text: string) => void] {
  const [text, setText] = useState(drafts.get(key) ?? '')
  const set = (next: string) => {
    drafts.set(key, next)
    setText(next)
  }
  return [text, set]
}

function AddStake({ account, role, balance, drafts, send, ...form }: { account: Address; role: Role } & Staking) {
  const [text, setText] = useDraft(drafts, `stake of ${account} ${role}`)
  const { amount, fault } = readAmount(text, balance)
  return (
    <OneField
      {...form}
      title={words.addStake}
      role={role}
      means={words.addTwoSteps}
      field={{ name: words.more, text, fault, change: setText }}
      go={amount === null ? null : () => send('delegate', amount, account, numberOf(role), amount)}
    />
  )
}

function Commission(of: { account: Address; role: Role; period: number } & Staking) {
  const { account, role, period, drafts, send, ...form } = of
  const [text, setText] = useDraft(drafts, `commission of ${account} ${role}`)
  const bps = parsePercent(text)
  const fault = text !== '' && bps === null ? words.notPercent : ''
  return (
    <OneField
      {...form}
      title={words.setCommission}
      role={role}
      means={words.commissionMeans(formatDuration(period))}
      field={{ name: words.newCommission, text, fault, change: setText }}
      go={bps === null ? null : () => send('setCommission', 0n, numberOf(role), bps)}
    />
  )
}

/** A form of one field, which is emptied once its action is done. */
function OneField(props: {
  title: string
  role: Role
  means: ReactNode
  field: Parameters<typeof Field>[0]
  /** The action; null while the field has no value for it. */
  go: (() => Promise<unknown>) | null
  busy: boolean
  reset: () => void
}) {
  const { title, field, go, reset } = props
  return (
    <form
      className="stack"
      aria-label={`${title}: ${say.role[props.role]}`}
      onSubmit={(event) => {
        event.preventDefault()
        void go?.().then((done) => done && field.change(''))
      }}
    >
      <Field
        {...field}
        change={(entry) => {
          field.change(entry)
          reset()
        }}
      />
      <div>
        <button type="submit" disabled={props.busy || go === null || field.fault !== ''}>
          {title}
        </button>
      </div>
      <p className="soft small">{props.means}</p>
    </form>
  )
}

export function Register({ roles, balance, busy, reset, send }: { roles: readonly Role[] } & Staking) {
  const [role, setRole] = useState<Role>(roles[0] ?? 'hospital')
  const [percent, setPercent] = useState('0')
  const [text, setText] = useState('')
  const bps = parsePercent(percent)
  const { amount, fault } = readAmount(text, balance)
  const stake = amount ?? 0n
  const resetting =
    <Value,>(set: (value: Value) => void) =>
    (value: Value) => {
      set(value)
      reset()
    }
  return (
    <Card title={words.become}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (bps !== null && fault === '') void send('register', stake, numberOf(role), bps, stake)
        }}
      >
        <Radios
          name={words.role}
          value={role}
          of={roles.map((one) => [one, say.role[one]] as const)}
          change={resetting(setRole)}
        />
        <p className="soft small">{words.becomeMeans[role]}</p>
        <div className="columns">
          <Field
            name={words.newCommission}
            fault={bps === null ? words.notPercent : ''}
            text={percent}
            change={resetting(setPercent)}
          />
          <Field name={words.amount} fault={fault} text={text} change={resetting(setText)} />
        </div>
        <p className="soft small">{words.registerMeans}</p>
        <div>
          <button type="submit" className="main" disabled={busy || bps === null || fault !== ''}>
            {words.register}
          </button>
        </div>
      </form>
    </Card>
  )
}
