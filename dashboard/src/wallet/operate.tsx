/** The operator's actions on a task: add to the pool, stop it, withdraw the refund. */
import { useState, type ReactNode } from 'react'
import type { Address } from 'viem'
import { useReadContract } from 'wagmi'
import type { Schemas } from '../api/client'
import { tasksAbi } from '../generated/abi'
import { same } from '../lib/accounts'
import { formatTokens } from '../lib/amounts'
import { ROLES } from '../lib/enums'
import { roomInPool, roundPay } from '../lib/funding'
import { Account, Facts, Tokens } from '../parts/basics'
import { Dialog, Shown } from '../parts/dialog'
import { Field, readAmount } from '../parts/field'
import { Table } from '../parts/table'
import * as say from '../strings'
import { Connected } from './connect'
import { useBalance, useNetwork } from './provider'
import { isBusy, SendingNotice, useApproved, useCalls, useSending, type Flow } from './sending'

const words = say.operate
const { columns } = say

type Task = Schemas['Task']

interface Acting {
  task: Task
  busy: boolean
  send: Flow['send']
}

export default function Operate({ task }: { task: Task }) {
  return <Connected>{(account) => <Operator isConnected={same(account, task.operator)} task={task} />}</Connected>
}

/** The actions stay as they are while the wallet has another account selected, and what came of them is shown. */
function Operator({ isConnected, task }: { isConnected: boolean; task: Task }) {
  const account = task.operator as Address
  const flow = useSending()
  const [wasConnected, setWasConnected] = useState(isConnected)
  if (isConnected && !wasConnected) setWasConnected(true)
  return (
    <>
      {!isConnected && (
        <p className="notice">
          <span>
            {words.notYours} <Account of={task.operator} />
          </span>
        </p>
      )}
      {wasConnected && (
        <SendingNotice of={flow} {...(isConnected ? { approvals: { account, contract: 'tasks' as const } } : {})} />
      )}
      {wasConnected && (
        <Shown when={isConnected}>
          <Actions account={account} task={task} flow={flow} />
        </Shown>
      )}
    </>
  )
}

function Actions({ account, task, flow }: { account: Address; task: Task; flow: Flow }) {
  const acting = { task, busy: isBusy(flow.sending), send: flow.send }
  return (
    <div className="stack parts">
      {task.phase === 'joining' ? (
        <Fund {...acting} account={account} reset={flow.reset} />
      ) : (
        <Section title={words.fund}>
          <p className="soft">{task.phase === 'ended' ? words.fundEnded : words.fundOver}</p>
        </Section>
      )}
      <Stop {...acting} />
      <Refund {...acting} account={account} />
    </div>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="stack" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  )
}

function Refund({ account, busy, send }: Acting & { account: Address }) {
  const { tasks } = useCalls()
  const { data: refundable } = useReadContract({
    address: useNetwork().tasks,
    abi: tasksAbi,
    functionName: 'claimable',
    args: [account],
  })
  return (
    <Section title={words.refund}>
      <p className="soft small">{words.refundMeans}</p>
      <Facts of={[[words.refundable, <Tokens key="refundable" of={refundable} />]]} />
      <div>
        <button type="button" disabled={busy || !refundable} onClick={() => void send(tasks('claim'))}>
          {words.refundGo}
        </button>
      </div>
    </Section>
  )
}

function Fund({ account, task, busy, send, reset }: Acting & { account: Address; reset: () => void }) {
  const { tasks } = useCalls()
  const approved = useApproved({ account, contract: 'tasks' })
  const [text, setText] = useState('')
  const balance = useBalance(account)
  const { terms } = task
  const room = roomInPool(terms)
  const read = readAmount(text, balance)
  const { amount } = read
  const fault = amount !== null && room !== null && amount > room ? words.tooMuch(formatTokens(room)) : read.fault
  const before = roundPay(terms, BigInt(terms.pool))
  const after = roundPay(terms, BigInt(terms.pool) + (amount ?? 0n))
  const canGo = amount !== null && fault === '' && balance !== undefined && !busy

  async function go(wanted: bigint) {
    if (await send(...approved(wanted, tasks('fund', BigInt(task.task), wanted)))) setText('')
  }

  return (
    <form
      className="stack"
      aria-label={words.fund}
      onSubmit={(event) => {
        event.preventDefault()
        if (canGo) void go(amount)
      }}
    >
      <h3>{words.fund}</h3>
      <p className="soft small">
        {words.fundMeans} {room !== null && words.room(formatTokens(room))}
      </p>
      <Facts of={[[say.balance, <Tokens key="balance" of={balance} />]]} />
      <Field
        name={say.amount}
        text={text}
        fault={fault}
        change={(entry) => {
          setText(entry)
          reset()
        }}
      />
      <Table
        caption={words.payRole}
        rows={ROLES}
        keyOf={(role) => role}
        columns={[
          { text: words.payRole, of: (role) => say.roles[role] },
          { tokens: columns.before, of: (role) => before[role] },
          { number: columns.after, of: (role) => (amount === null ? '–' : <Tokens of={after[role]} />) },
        ]}
      />
      <div>
        <button type="submit" className="main" disabled={!canGo}>
          {words.fundGo}
        </button>
      </div>
    </form>
  )
}

function Stop({ task, busy, send }: Acting) {
  const { tasks } = useCalls()
  const [isAsking, setAsking] = useState(false)
  const isOver = task.phase === 'ended'
  // A task cannot end after the statistics round alone: one training round follows it.
  const last = Math.min(Math.max(task.round, 1), task.rounds)
  const means = task.phase === 'joining' ? words.stopJoining : words.stopRunning(last)
  return (
    <Section title={words.stop}>
      {isOver || task.stopping ? (
        <p className="soft">{isOver ? words.stopEnded : words.stopping(task.last_round)}</p>
      ) : (
        <>
          <p className="soft small">{means}</p>
          <div>
            <button type="button" disabled={busy} onClick={() => setAsking(true)}>
              {words.stopOpen}
            </button>
          </div>
        </>
      )}
      {isAsking && (
        <Dialog
          title={words.stop}
          close={() => setAsking(false)}
          go={() => {
            setAsking(false)
            void send(tasks('stop', BigInt(task.task)))
          }}
        >
          <p>
            {means} {words.stopForGood}
          </p>
        </Dialog>
      )}
    </Section>
  )
}
