import { useState } from 'react'
import type { Address } from 'viem'
import { History } from '../pages/account'
import { isAccount } from '../lib/accounts'
import { formatTokens, parseTokens } from '../lib/amounts'
import { numberOf, ROLE_NAMES } from '../lib/enums'
import { sharesFor } from '../lib/whatif'
import { Account, Ago, Card, Fault, Figure, Loading, Notice, Tokens, useNow } from '../parts/basics'
import { Choice } from '../parts/choice'
import { Dialog } from '../parts/dialog'
import { Field } from '../parts/field'
import { Table, TableCard } from '../parts/table'
import { say } from '../strings'
import { Connected } from './connect'
import { useHoldings, type Holding, type Holdings, type Unbonding } from './positions'
import { isBusy, SendingNotice, useCalls, useSending, type Call } from './sending'

const words = say.portfolio
const { columns } = say

/** The connected account's stake, and the actions on it. */
export default function OwnPortfolio() {
  return <Connected>{(account) => <Portfolio account={account} />}</Connected>
}

function Portfolio({ account }: { account: Address }) {
  const { data, error, refetch } = useHoldings(account)
  return (
    <>
      {error && <Fault error={error} retry={() => void refetch()} />}
      {data ? <Positions of={data} /> : !error && <Loading />}
      {data && !data.fromEvents && <History account={account} />}
    </>
  )
}

function total(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => sum + amount, 0n)
}

type Action = { unbond: Holding } | { redelegate: Unbonding }

function Positions({ of }: { of: Holdings }) {
  const flow = useSending()
  const { sending, send, reset } = flow
  const [action, setAction] = useState<Action | null>(null)
  const { staking } = useCalls()
  const busy = isBusy(sending)
  const ask = (next: Action) => {
    reset()
    setAction(next)
  }
  const close = () => setAction(null)
  const go = (call: Call) => {
    close()
    void send(call)
  }
  return (
    <>
      {of.fromEvents && <Notice kind="wait">{words.fromEvents}</Notice>}
      <dl className="figures">
        <Figure name={say.balance} value={<Tokens of={of.balance} />} />
        <Figure name={words.staked} value={<Tokens of={total(of.holdings.map((one) => one.worth))} />} />
        <Figure name={words.claimable} value={<Tokens of={total(of.holdings.map((one) => one.claimable))} />} />
        <Figure name={words.unbonding} value={<Tokens of={total(of.unbondings.map((one) => one.worth))} />} />
      </dl>
      <SendingNotice of={flow} />
      <Delegations of={of.holdings} busy={busy} go={go} unbond={(one) => ask({ unbond: one })} />
      <Unbondings of={of.unbondings} busy={busy} go={go} redelegate={(one) => ask({ redelegate: one })} />
      {action && 'unbond' in action && (
        <Unbond
          of={action.unbond}
          cancel={close}
          go={(shares) => go(staking('startUnbonding', action.unbond.node, numberOf(action.unbond.role), shares))}
        />
      )}
      {action && 'redelegate' in action && (
        <Redelegate
          of={action.redelegate}
          cancel={close}
          go={(node, role) => go(staking('redelegate', action.redelegate.request, node, role))}
        />
      )}
    </>
  )
}

interface Acting {
  busy: boolean
  go: (call: Call) => void
}

function Delegations({ of, busy, go, unbond }: { of: readonly Holding[]; unbond: (one: Holding) => void } & Acting) {
  const { staking } = useCalls()
  const claimable = of.filter((one) => one.claimable > 0n)
  const nodes = claimable.map((one) => ({ node: one.node, role: numberOf(one.role) }))
  return (
    <Card title={words.holdings}>
      <Table
        caption={words.holdings}
        rows={of}
        keyOf={(one) => one.node + one.role}
        empty={words.none}
        columns={[
          { text: columns.node, of: (one) => <Account of={one.node} as={one.role} /> },
          { text: columns.role, of: (one) => say.role[one.role] },
          { tokens: columns.worth, of: (one) => one.worth },
          { tokens: columns.claimable, of: (one) => one.claimable },
          {
            text: columns.actions,
            of: (one) => (
              <div className="tools">
                <button
                  type="button"
                  disabled={busy || one.claimable === 0n}
                  onClick={() => go(staking('claim', one.node, numberOf(one.role)))}
                >
                  {words.claim}
                </button>
                <button type="button" disabled={busy || one.shares === 0n} onClick={() => unbond(one)}>
                  {words.unbond}
                </button>
              </div>
            ),
          },
        ]}
      />
      {claimable.length > 1 && (
        <div>
          <button type="button" className="main" disabled={busy} onClick={() => go(staking('claimMany', nodes))}>
            {words.claimAll}
          </button>
        </div>
      )}
    </Card>
  )
}

function Unbondings({
  of,
  busy,
  go,
  redelegate,
}: { of: readonly Unbonding[]; redelegate: (one: Unbonding) => void } & Acting) {
  const { staking } = useCalls()
  const now = useNow()
  return (
    <TableCard
      title={words.unbonding}
      means={words.unbondingMeans}
      rows={of}
      keyOf={(one) => String(one.request)}
      empty={say.account.noUnbonding}
      columns={[
        { text: columns.node, of: (one) => <Account of={one.node} as={one.role} /> },
        { tokens: columns.worth, of: (one) => one.worth },
        { text: columns.matures, of: (one) => <Ago of={one.maturesAt} /> },
        {
          text: columns.actions,
          of: (one) => {
            const isLocked = busy || one.maturesAt > now
            return (
              <div className="tools">
                <button type="button" disabled={isLocked} onClick={() => go(staking('withdraw', one.request))}>
                  {words.withdraw}
                </button>
                <button type="button" disabled={isLocked} onClick={() => redelegate(one)}>
                  {words.redelegate}
                </button>
              </div>
            )
          },
        },
      ]}
    />
  )
}

function Unbond({ of, cancel, go }: { of: Holding; cancel: () => void; go: (shares: bigint) => void }) {
  const whole = formatTokens(of.worth)
  const [text, setText] = useState(whole)
  const amount = text === whole ? of.worth : parseTokens(text)
  const fault = amount === null ? say.notAmount : amount > of.worth ? words.overWorth : ''
  return (
    <Dialog
      title={words.unbond}
      close={cancel}
      isReady={fault === ''}
      go={() => {
        if (amount !== null) go(sharesFor(amount, of))
      }}
    >
      <p className="soft">{words.unbondingMeans}</p>
      <Field name={words.howMuch(whole)} text={text} fault={fault} change={setText} />
    </Dialog>
  )
}

function Redelegate({
  of,
  cancel,
  go,
}: {
  of: Unbonding
  cancel: () => void
  go: (node: string, role: number) => void
}) {
  const [node, setNode] = useState('')
  const [role, setRole] = useState(of.role)
  const bad = !isAccount(node.trim())
  return (
    <Dialog title={words.redelegate} close={cancel} isReady={!bad} go={() => go(node.trim(), numberOf(role))}>
      <p className="soft">{words.redelegateMeans(formatTokens(of.worth))}</p>
      <label>
        {columns.node}
        <input
          value={node}
          autoComplete="off"
          spellCheck={false}
          placeholder={say.account.lookHint}
          aria-invalid={node !== '' && bad}
          onChange={(event) => setNode(event.target.value)}
        />
      </label>
      <Choice name={columns.role} value={role} of={ROLE_NAMES} change={setRole} />
    </Dialog>
  )
}
