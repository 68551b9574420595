/** What a task's operator can do with it: add to the pool, stop it, take home what is left. */
import { useState } from 'react'
import type { Address } from 'viem'
import { useReadContract } from 'wagmi'
import type { Schemas } from '../api/client'
import { tasksAbi, tokenAbi } from '../generated/abi'
import { same } from '../lib/accounts'
import { formatTokens, parseTokens } from '../lib/amounts'
import { roomInPool, roundPay } from '../lib/funding'
import { Account, Facts, Tokens } from '../parts/basics'
import { Dialog } from '../parts/dialog'
import { Table } from '../parts/table'
import { say } from '../strings'
import { Connect } from './connect'
import { usePlace, WithWallet } from './provider'
import { isBusy, SendingNotice, useSending } from './sending'

const words = say.operate

type Task = Schemas['Task']
type Send = ReturnType<typeof useSending>['send']

export default function Operate({ task }: { task: Task }) {
  return (
    <WithWallet>
      <Connect>
        {(account) =>
          same(account, task.operator) ? (
            <Mine account={account} task={task} />
          ) : (
            <p className="notice">
              <span>
                {words.notYours} <Account of={task.operator} />
              </span>
            </p>
          )
        }
      </Connect>
    </WithWallet>
  )
}

function Mine({ account, task }: { account: Address; task: Task }) {
  const place = usePlace()
  const { sending, send, reset } = useSending()
  const { data: refundable = 0n } = useReadContract({
    address: place.tasks,
    abi: tasksAbi,
    functionName: 'claimable',
    args: [account],
  })
  const busy = isBusy(sending)
  return (
    <div className="stack parts">
      <SendingNotice of={sending} />
      <Fund account={account} task={task} busy={busy} send={send} reset={reset} />
      <Stop task={task} busy={busy} send={send} />
      <section className="stack" aria-label={words.refund}>
        <h3>{words.refund}</h3>
        <p className="soft small">{words.refundMeans}</p>
        <Facts of={[[words.refundable, <Tokens key="refundable" of={refundable} />]]} />
        <div>
          <button
            type="button"
            disabled={busy || refundable === 0n}
            onClick={() =>
              void send({ address: place.tasks, abi: tasksAbi, functionName: 'claim', args: [] })
            }
          >
            {words.refundGo}
          </button>
        </div>
      </section>
    </div>
  )
}

function Fund(props: { account: Address; task: Task; busy: boolean; send: Send; reset: () => void }) {
  const { account, task } = props
  const place = usePlace()
  const [text, setText] = useState('')
  const { data: balance } = useReadContract({
    address: place.token,
    abi: tokenAbi,
    functionName: 'balanceOf',
    args: [account],
  })
  if (task.phase !== 'joining')
    return (
      <section className="stack" aria-label={words.fund}>
        <h3>{words.fund}</h3>
        <p className="soft">{task.phase === 'ended' ? words.fundEnded : words.fundOver}</p>
      </section>
    )
  const { terms } = task
  const pool = BigInt(terms.pool)
  const room = roomInPool(terms)
  const amount = parseTokens(text)
  const before = roundPay(terms, pool)
  const after = roundPay(terms, pool + (amount ?? 0n))
  const fault =
    text === ''
      ? ''
      : amount === null
        ? say.delegate.noAmount
        : room !== null && amount > room
          ? words.tooMuch(formatTokens(room))
          : balance !== undefined && amount > balance
            ? say.delegate.tooMuch
            : ''
  const canGo = amount !== null && fault === '' && balance !== undefined && !props.busy

  async function go(wanted: bigint) {
    const approval = {
      address: place.token,
      abi: tokenAbi,
      functionName: 'approve',
      args: [place.tasks, wanted],
    }
    const funding = {
      address: place.tasks,
      abi: tasksAbi,
      functionName: 'fund',
      args: [BigInt(task.task), wanted],
    }
    if (await props.send(approval, funding)) setText('')
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
      <Facts of={[[say.delegate.balance, <Tokens key="balance" of={balance ?? 0n} />]]} />
      <label>
        {words.amount}
        <input
          inputMode="decimal"
          autoComplete="off"
          value={text}
          aria-invalid={fault !== ''}
          aria-describedby="fund-fault"
          onChange={(event) => {
            setText(event.target.value)
            props.reset()
          }}
        />
      </label>
      <p id="fund-fault" className="bad small" role="status">
        {fault}
      </p>
      <Table
        caption={words.payColumns.role}
        rows={['hospital', 'voter', 'aggregator'] as const}
        name={(role) => role}
        empty=""
        columns={[
          { name: words.payColumns.role, cell: (role) => say.roles[role] },
          { name: words.payColumns.before, number: true, cell: (role) => <Tokens of={before[role]} /> },
          {
            name: words.payColumns.after,
            number: true,
            cell: (role) => (amount === null ? '–' : <Tokens of={after[role]} />),
          },
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

function Stop({ task, busy, send }: { task: Task; busy: boolean; send: Send }) {
  const place = usePlace()
  const [asked, setAsked] = useState(false)
  const isOver = task.phase === 'ended'
  // The statistics round alone is not to be had: one training round is played after it.
  const last = Math.min(Math.max(task.round, 1), task.rounds)
  const means = task.phase === 'joining' ? words.stopJoining : words.stopRunning(last)
  return (
    <section className="stack" aria-label={words.stop}>
      <h3>{words.stop}</h3>
      {isOver || task.stopping ? (
        <p className="soft">{isOver ? words.stopEnded : words.stopping(task.last_round)}</p>
      ) : (
        <>
          <p className="soft small">{means}</p>
          <div>
            <button type="button" disabled={busy} onClick={() => setAsked(true)}>
              {words.stopOpen}
            </button>
          </div>
        </>
      )}
      {asked && (
        <Dialog
          title={words.stop}
          act={words.stopGo}
          close={() => setAsked(false)}
          go={() => {
            setAsked(false)
            void send({
              address: place.tasks,
              abi: tasksAbi,
              functionName: 'stop',
              args: [BigInt(task.task)],
            })
          }}
        >
          <p>
            {means} {words.stopForGood}
          </p>
        </Dialog>
      )}
    </section>
  )
}
