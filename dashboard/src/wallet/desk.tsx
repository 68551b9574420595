import { useQueries, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'react-router'
import type { Address } from 'viem'
import { ApiUnreachable, type Role, type Schemas } from '../api/client'
import { node as nodeOf, payments, rolesOf, round as roundOf, task as taskOf } from '../api/queries'
import { stakingAbi, tasksAbi, tokenAbi } from '../generated/abi'
import { same } from '../lib/accounts'
import { formatBps, formatTokens, parsePercent, parseTokens } from '../lib/amounts'
import { dutiesOf, type Duty, type Part } from '../lib/duties'
import { formatDuration, formatTime } from '../lib/times'
import { Listed } from '../parts/asked'
import { Ago, Card, Facts, Fault, Figure, Loading, PhaseBadge, Time, Tokens, useNow } from '../parts/basics'
import { Command } from '../parts/command'
import { Table } from '../parts/table'
import { say } from '../strings'
import { Connect } from './connect'
import { useOwn, type Own as Known, type OwnNode } from './own'
import { numberOf, ROLES } from '../lib/enums'
import { usePlace, WithWallet } from './provider'
import { isBusy, SendingNotice, useSending, type Call } from './sending'

const words = say.desk
const TASKS = 20 // of a role, looked at one by one

/** The connected account's nodes, and what it can do with them. */
export default function Own() {
  return (
    <WithWallet>
      <Connect>{(account) => <Of account={account} key={account} />}</Connect>
    </WithWallet>
  )
}

function Of({ account }: { account: Address }) {
  const { data: own, error, refetch } = useOwn(account)
  const { sending, send, reset } = useSending()
  const place = usePlace()
  if (!own) return error ? <Fault error={error} retry={() => void refetch()} /> : <Loading />

  /** An approval comes first where stake goes along. */
  const stake = (functionName: string, args: readonly unknown[], amount: bigint) => {
    const approval: Call = {
      address: place.token,
      abi: tokenAbi,
      functionName: 'approve',
      args: [place.staking, amount],
    }
    const call: Call = { address: place.staking, abi: stakingAbi, functionName, args }
    return amount > 0n ? send(approval, call) : send(call)
  }
  const total = (amounts: bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n)
  const busy = isBusy(sending)
  const missing = ROLES.filter((role) => !own.nodes.some((one) => one.role === role))
  return (
    <>
      {error && <Fault error={error} retry={() => void refetch()} />}
      <dl className="figures">
        <Figure name={say.portfolio.wallet} value={<Tokens of={own.balance} />} />
        <Figure
          name={words.own}
          value={<Tokens of={total(own.nodes.map((one) => one.own))} />}
          beside={words.ownMeans}
        />
        <Figure
          name={words.claimable}
          value={<Tokens of={total(own.nodes.map((one) => one.claimable))} />}
          beside={<Link to="/portfolio">{words.toPortfolio}</Link>}
        />
      </dl>
      <SendingNotice of={sending} />
      {own.nodes.length > 0 && (
        <Work
          account={account}
          roles={own.nodes.map((one) => one.role)}
          busy={busy}
          release={(task) =>
            void send({
              address: place.tasks,
              abi: tasksAbi,
              functionName: 'releaseBond',
              args: [BigInt(task), account],
            })
          }
        />
      )}
      {own.nodes.map((one) => (
        <Node key={one.role} account={account} own={own} node={one} busy={busy} reset={reset} stake={stake} />
      ))}
      {missing.length > 0 && (
        <Become
          key={missing.join()}
          roles={missing}
          balance={own.balance}
          busy={busy}
          reset={reset}
          stake={stake}
        />
      )}
    </>
  )
}

type Stake = (functionName: string, args: readonly unknown[], amount: bigint) => Promise<unknown>

// Work: what the API knows

interface Releasing {
  busy: boolean
  release: (task: number) => void
}

function Work({ account, roles, ...releasing }: { account: Address; roles: readonly Role[] } & Releasing) {
  const { parts, failed } = useParts(account, roles)
  if (failed instanceof ApiUnreachable && parts.length === 0)
    return <p className="notice wait">{words.noApi}</p>
  return (
    <>
      {failed && <Fault error={failed} />}
      <Duties account={account} parts={parts} />
      <Card title={words.tasks} means={parts.length >= TASKS ? words.someTasks(TASKS) : undefined}>
        <Tasks account={account} parts={parts} {...releasing} />
      </Card>
      <Card title={words.payments}>
        <Listed query={payments({ account, limit: 25 })}>{(items) => <Payments items={items} />}</Listed>
      </Card>
    </>
  )
}

/** Every part in a task that the account has or had, its tasks' latest rounds included. */
function useParts(account: Address, roles: readonly Role[]): { parts: Part[]; failed: Error | null } {
  const { data: known, error } = useQuery(rolesOf(account)) // a node that is registered just now is on its way
  const nodes = useQueries({
    queries: roles.map((role) => ({
      ...nodeOf(account, role),
      enabled: known?.items.some((one) => one.role === role) ?? false,
    })),
  })
  const taken = nodes.flatMap(({ data }) =>
    data ? data.task_history.slice(0, TASKS).map((one) => ({ role: data.role, task: one.task })) : [],
  )
  const numbers = [...new Set(taken.map((one) => one.task))]
  const tasks = useQueries({ queries: numbers.map(taskOf) })
  const running = tasks.flatMap(({ data }) =>
    data && data.phase !== 'ended' && data.phase !== 'joining' ? [data] : [],
  )
  const rounds = useQueries({ queries: running.map((one) => roundOf(one.task, one.round)) })
  const parts = taken.flatMap(({ role, task: number }): Part[] => {
    const task = tasks.find(({ data }) => data?.task === number)?.data
    if (!task) return []
    const round = rounds.find(({ data }) => data?.task === number && data.round === task.round)?.data
    return [{ role, task, round: round ?? null }]
  })
  const failed = [error, ...[...nodes, ...tasks, ...rounds].map((one) => one.error)].find(
    (one) => one !== null,
  )
  return { parts: parts.toSorted((one, other) => other.task.task - one.task.task), failed: failed ?? null }
}

function nameOf(task: { task: number; name: string | null }): string {
  return `${task.task}. ${task.name ?? say.tasks.unnamed(task.task)}`
}

function Duties({ account, parts }: { account: Address; parts: readonly Part[] }) {
  const now = useNow()
  const columns = words.dutyColumns
  return (
    <Card title={words.duties} means={words.dutiesMeans}>
      <Table
        caption={words.duties}
        rows={dutiesOf(parts, account, now)}
        name={(one) => `${one.task}-${one.role}`}
        empty={words.nothingToDo}
        columns={[
          {
            name: columns.what,
            cell: (one) => (
              <>
                {words.deed[one.deed]}
                <br />
                <Link className="small" to={`/tasks/${one.task}/rounds/${one.round}`}>
                  {say.round.title(one.round, one.task)}
                </Link>
              </>
            ),
          },
          { name: columns.as, cell: (one) => say.role[one.role] },
          { name: columns.by, cell: (one) => <By of={one} /> },
          { name: columns.ifNot, cell: (one) => <IfNot of={one} /> },
        ]}
      />
    </Card>
  )
}

function By({ of }: { of: Duty }) {
  if (of.isOverdue) return <span className="bad">{words.overdue}</span>
  return <Ago of={of.by} />
}

function IfNot({ of }: { of: Duty }) {
  const without = of.round === 0 ? words.withoutStatistics : words.without[of.deed]
  if (!of.slash) return without
  return (
    <>
      <span className="bad">{words.slash(formatBps(of.slash.bps), formatTokens(of.slash.amount))}</span>
      <br />
      <span className="small soft">{without}</span>
    </>
  )
}

function Tasks({ account, parts, busy, release }: { account: Address; parts: readonly Part[] } & Releasing) {
  const columns = words.taskColumns
  const mine = (part: Part) =>
    part.task.participants.find((one) => one.role === part.role && same(one.account, account))
  return (
    <Table
      caption={words.tasks}
      rows={parts}
      name={(one) => `${one.task.task}-${one.role}`}
      empty={words.noTasks}
      columns={[
        {
          name: columns.task,
          cell: ({ task }) => (
            <Link to={`/tasks/${task.task}`}>
              <bdi>{nameOf(task)}</bdi>
            </Link>
          ),
        },
        { name: columns.as, cell: (one) => say.role[one.role] },
        { name: columns.phase, cell: ({ task }) => <PhaseBadge phase={task.phase} /> },
        {
          name: columns.round,
          number: true,
          cell: ({ task }) => say.tasks.ofRounds(task.round, task.terms.rounds),
        },
        { name: columns.earned, number: true, cell: (one) => <Tokens of={mine(one)?.earned ?? '0'} /> },
        { name: columns.slashed, number: true, cell: (one) => <Tokens of={mine(one)?.slashed ?? '0'} /> },
        {
          name: columns.bond,
          number: true,
          cell: (one) => {
            const bond = mine(one)?.bond ?? '0'
            return one.task.phase === 'ended' && bond !== '0' ? (
              <button
                type="button"
                disabled={busy}
                aria-label={words.releaseOf(one.task.task)}
                onClick={() => release(one.task.task)}
              >
                {words.release} <Tokens of={bond} />
              </button>
            ) : (
              <Tokens of={bond} />
            )
          },
        },
      ]}
    />
  )
}

function Payments({ items }: { items: readonly Schemas['Payment'][] }) {
  const columns = words.paymentColumns
  return (
    <Table
      caption={words.payments}
      rows={items}
      name={(one) => `${one.block}-${one.log_index}`}
      empty={words.noPayments}
      columns={[
        { name: columns.time, cell: (one) => <Time of={one.time} /> },
        {
          name: columns.what,
          cell: (one) => (
            <span className={one.kind === 'slash' ? 'bad' : ''}>{say.round.kind[one.kind]}</span>
          ),
        },
        { name: columns.as, cell: (one) => (one.role ? say.role[one.role] : '') },
        { name: columns.amount, number: true, cell: (one) => <Tokens of={one.amount} /> },
        {
          name: columns.where,
          cell: (one) =>
            one.round === null ? (
              <Link to={`/tasks/${one.task}`}>{say.task.title(one.task)}</Link>
            ) : (
              <Link to={`/tasks/${one.task}/rounds/${one.round}`}>
                {say.round.title(one.round, one.task)}
              </Link>
            ),
        },
        { name: columns.why, cell: (one) => (one.reason ? say.reason[one.reason] : '') },
      ]}
    />
  )
}

// Stake: what the contract knows, and takes

interface Forms {
  busy: boolean
  reset: () => void
  stake: Stake
}

function Node({ account, own, node, ...forms }: { account: Address; own: Known; node: OwnNode } & Forms) {
  const { role } = node
  const command = words.command[role]
  return (
    <Card title={say.role[role]}>
      <Facts
        of={[
          [words.active, <Tokens key="active" of={node.active} />],
          [words.mine, <Tokens key="own" of={node.own} />],
          [words.free, <Tokens key="free" of={node.free} />],
          [words.locked, <Tokens key="locked" of={node.locked} />],
          [words.unbonding, <Tokens key="unbonding" of={node.unbonding} />],
          [
            words.commission,
            formatBps(node.commissionBps) +
              (node.next ? `, ${say.node.next(formatBps(node.next.bps), formatTime(node.next.at))}` : ''),
          ],
          ...(role === 'voter'
            ? [[words.key, own.hasVoterKey ? words.keyThere : words.keyMissing] as const]
            : []),
        ]}
      />
      <div className="columns">
        <More {...forms} account={account} role={role} balance={own.balance} />
        <Commission {...forms} role={role} period={own.unbondingPeriod} />
      </div>
      {!(role === 'voter' && own.hasVoterKey) && (
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

/** A field of a form, and what is wrong with what it holds. */
function Field(props: {
  name: string
  fault: string
  id: string
  text: string
  change: (text: string) => void
}) {
  const id = `${props.id}-fault`
  return (
    <div className="field">
      <label>
        {props.name}
        <input
          inputMode="decimal"
          autoComplete="off"
          value={props.text}
          aria-invalid={props.fault !== ''}
          aria-describedby={id}
          onChange={(event) => props.change(event.target.value)}
        />
      </label>
      <p id={id} className="bad small" role="status">
        {props.fault}
      </p>
    </div>
  )
}

/** What an amount that was typed is, and what is wrong with it. Empty is zero, and nothing wrong. */
function amountOf(text: string, balance: bigint): { amount: bigint; fault: string } {
  if (text.trim() === '') return { amount: 0n, fault: '' }
  const amount = parseTokens(text)
  if (amount === null) return { amount: 0n, fault: words.noAmount }
  return { amount, fault: amount > balance ? words.tooMuch : '' }
}

function More({
  account,
  role,
  balance,
  ...forms
}: { account: Address; role: Role; balance: bigint } & Forms) {
  const [text, setText] = useState('')
  const { amount, fault } = amountOf(text, balance)
  return (
    <OneField
      {...forms}
      role={role}
      title={words.addStake}
      name={words.more}
      means={words.addTwoSteps}
      text={text}
      setText={setText}
      fault={fault}
      isReady={amount !== 0n && fault === ''}
      go={() => forms.stake('delegate', [account, numberOf(role), amount], amount)}
    />
  )
}

function Commission({ role, period, ...forms }: { role: Role; period: number } & Forms) {
  const [text, setText] = useState('')
  const bps = parsePercent(text)
  return (
    <OneField
      {...forms}
      role={role}
      title={words.setCommission}
      name={words.newCommission}
      means={words.commissionMeans(formatDuration(period))}
      text={text}
      setText={setText}
      fault={text !== '' && bps === null ? words.noPercent : ''}
      isReady={bps !== null}
      go={() => forms.stake('setCommission', [numberOf(role), bps], 0n)}
    />
  )
}

/** A form of one field, which is emptied once what it asks for is done. */
function OneField(
  props: {
    role: Role
    title: string
    name: string
    means: string
    text: string
    setText: (text: string) => void
    fault: string
    isReady: boolean
    go: () => Promise<unknown>
  } & Forms,
) {
  return (
    <form
      className="stack"
      aria-label={`${props.title}: ${say.role[props.role]}`}
      onSubmit={(event) => {
        event.preventDefault()
        void props.go().then((done) => done && props.setText(''))
      }}
    >
      <Field
        id={`${props.name}-${props.role}`.replaceAll(/[^a-z]+/gi, '-')}
        name={props.name}
        fault={props.fault}
        text={props.text}
        change={(given) => {
          props.setText(given)
          props.reset()
        }}
      />
      <div>
        <button type="submit" disabled={props.busy || !props.isReady}>
          {props.title}
        </button>
      </div>
      <p className="soft small">{props.means}</p>
    </form>
  )
}

function Become({ roles, balance, busy, reset, stake }: { roles: readonly Role[]; balance: bigint } & Forms) {
  const [role, setRole] = useState<Role>(roles[0] ?? 'hospital')
  const [percent, setPercent] = useState('0')
  const [text, setText] = useState('')
  const bps = parsePercent(percent)
  const { amount, fault } = amountOf(text, balance)
  return (
    <Card title={words.become}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (bps !== null && fault === '') void stake('register', [numberOf(role), bps, amount], amount)
        }}
      >
        <fieldset className="choices">
          <legend>{words.role}</legend>
          {roles.map((one) => (
            <label key={one}>
              <input
                type="radio"
                name="role"
                checked={role === one}
                onChange={() => {
                  setRole(one)
                  reset()
                }}
              />{' '}
              {say.role[one]}
            </label>
          ))}
        </fieldset>
        <p className="soft small">{words.becomeMeans[role]}</p>
        <div className="columns">
          <Field
            id="register-commission"
            name={words.newCommission}
            fault={bps === null ? words.noPercent : ''}
            text={percent}
            change={(given) => {
              setPercent(given)
              reset()
            }}
          />
          <Field
            id="register-amount"
            name={words.amount}
            fault={fault}
            text={text}
            change={(given) => {
              setText(given)
              reset()
            }}
          />
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
