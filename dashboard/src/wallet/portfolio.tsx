import { useState } from 'react'
import type { Address } from 'viem'
import { History } from '../pages/account'
import { same } from '../lib/accounts'
import { formatTokens, parseTokens } from '../lib/amounts'
import { numberOf } from '../lib/enums'
import { sharesFor } from '../lib/whatif'
import { Account, Ago, Card, Fault, Figure, Loading, Notice, Time, Tokens, useNow } from '../parts/basics'
import { Dialog, Shown } from '../parts/dialog'
import { Field } from '../parts/field'
import { Table, TableCard } from '../parts/table'
import { Watch } from '../parts/watch'
import * as say from '../strings'
import { earnings, restake as restaking } from '../strings/earnings'
import { Connected } from './connect'
import { EarnedFigure, Earnings } from './earnings'
import { PickNode, type Picked } from './pick'
import { useHoldings, type Holding, type Holdings, type Unbonding } from './positions'
import { useIsContract } from './provider'
import { Restake, StandingClaim, useRestake } from './restake'
import { isBusy, SendingNotice, useCalls, useSending, type Call } from './sending'

const words = say.portfolio
const { columns } = say

/** The connected account's stake, and the actions on it. */
export default function OwnPortfolio() {
  return <Connected>{(account) => <Portfolio account={account} />}</Connected>
}

function Portfolio({ account }: { account: Address }) {
  const { data, error, refetch, isPlaceholderData: isOther } = useHoldings(account)
  return (
    <>
      {error && <Fault error={error} retry={() => void refetch()} />}
      {!error && (!data || isOther) && <Loading />}
      {data && (
        <Shown when={!isOther}>
          <Positions account={account} of={data} />
        </Shown>
      )}
      {data && !isOther && !data.fromEvents && <History account={account} />}
    </>
  )
}

function total(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => sum + amount, 0n)
}

type Action = { unbond: Holding } | { redelegate: Unbonding } | { restake: Holding }

const keyOf = (one: { unbond: Holding } | { redelegate: Unbonding }) =>
  'unbond' in one ? one.unbond.node + one.unbond.role : String(one.redelegate.request)

function Positions({ account, of }: { account: Address; of: Holdings }) {
  const flow = useSending()
  const restake = useRestake(account, flow)
  const { sending, send, reset } = flow
  // After a dialog's action failed it is opened again as it was.
  const [asked, setAsked] = useState<{ by: Address; action: Action } | null>(null)
  const [isOpen, setOpen] = useState(false)
  const action = same(asked?.by, account) ? asked?.action : undefined
  const { staking } = useCalls()
  const busy = isBusy(sending)
  const ask = (next: Action) => {
    reset()
    setAsked({ by: account, action: next })
    setOpen(true)
  }
  const close = () => setAsked(null)
  const go = (call: Call) => {
    setOpen(false)
    void send(call).then((receipt) => receipt && close())
  }
  const [staked, claimable, unbonding] = [
    total(of.holdings.map((one) => one.worth)),
    total(of.holdings.map((one) => one.claimable)),
    total(of.unbondings.map((one) => one.worth)),
  ]
  const vesting = total(of.holdings.map((one) => one.vesting))
  return (
    <>
      {of.fromEvents && <Notice kind="wait">{words.fromEvents}</Notice>}
      <dl className="figures">
        <Figure name={say.balance} value={<Tokens of={of.balance} />} />
        <Figure
          name={earnings.inAll}
          value={<Tokens of={staked + claimable + unbonding} />}
          beside={earnings.inAllMeans}
        />
        <Figure name={words.staked} value={<Tokens of={staked} />} />
        <Figure name={words.unbonding} value={<Tokens of={unbonding} />} />
        <Figure name={words.claimable} value={<Tokens of={claimable} />} />
        {vesting > 0n && <Figure name={earnings.vesting} value={<Tokens of={vesting} />} />}
        <EarnedFigure account={account} claimable={claimable} />
      </dl>
      <SendingNotice of={flow} />
      <StandingClaim of={restake} flow={flow} />
      <Delegations account={account} of={of.holdings} busy={busy} go={go} ask={ask} />
      <Unbondings of={of} busy={busy} go={go} redelegate={(one) => ask({ redelegate: one })} />
      <Earnings account={account} claimable={claimable} />
      {action && 'unbond' in action && (
        <Unbond
          key={keyOf(action)}
          isOpen={isOpen}
          of={action.unbond}
          cancel={close}
          go={(shares) => go(staking('startUnbonding', action.unbond.node, numberOf(action.unbond.role), shares))}
        />
      )}
      {action && 'redelegate' in action && (
        <Redelegate
          key={keyOf(action)}
          isOpen={isOpen}
          of={action.redelegate}
          cancel={close}
          go={({ node, role }) => go(staking('redelegate', action.redelegate.request, node, numberOf(role)))}
        />
      )}
      {action && 'restake' in action && (
        <Restake
          of={action.restake}
          cancel={close}
          go={(amount) => {
            close()
            void restake.go(action.restake, amount)
          }}
        />
      )}
    </>
  )
}

interface Acting {
  busy: boolean
  go: (call: Call) => void
}

function Delegations({
  account,
  of,
  busy,
  go,
  ask,
}: { account: Address; of: readonly Holding[]; ask: (action: Action) => void } & Acting) {
  const { staking } = useCalls()
  const isContract = useIsContract(account)
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
          ...(of.some((one) => one.vesting > 0n)
            ? [{ number: earnings.vesting, of: (one: Holding) => <Vesting of={one} /> }]
            : []),
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
                {isContract === false && !one.isPaidElsewhere && (
                  <button type="button" disabled={busy || one.claimable === 0n} onClick={() => ask({ restake: one })}>
                    {restaking.title}
                  </button>
                )}
                <button type="button" disabled={busy || one.shares === 0n} onClick={() => ask({ unbond: one })}>
                  {words.unbond}
                </button>
                <Watch of={{ node: one.node }} />
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

function Vesting({ of }: { of: Holding }) {
  if (of.vesting === 0n) return '–'
  return (
    <>
      <Tokens of={of.vesting} />, {earnings.until} <Time of={of.vestingEnd} />
    </>
  )
}

function Unbondings({ of, busy, go, redelegate }: { of: Holdings; redelegate: (one: Unbonding) => void } & Acting) {
  const { staking } = useCalls()
  const now = useNow()
  return (
    <TableCard
      title={words.unbonding}
      means={words.unbondingMeans}
      rows={of.unbondings}
      keyOf={(one) => String(one.request)}
      empty={say.account.noUnbonding}
      columns={[
        { text: columns.node, of: (one) => <Account of={one.node} as={one.role} /> },
        { tokens: columns.worth, of: (one) => one.worth },
        {
          text: columns.matures,
          of: (one) => (
            <>
              <Time of={one.maturesAt} /> (<Ago of={one.maturesAt} />){' '}
              <progress
                aria-label={earnings.left(one.request)}
                max={of.unbondingPeriod}
                value={Math.max(0, Math.min(of.unbondingPeriod, of.unbondingPeriod + now - one.maturesAt))}
              />
            </>
          ),
        },
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

interface Asking {
  isOpen: boolean
  cancel: () => void
}

function Unbond({ of, isOpen, cancel, go }: Asking & { of: Holding; go: (shares: bigint) => void }) {
  const whole = formatTokens(of.worth)
  const [text, setText] = useState(whole)
  const amount = text === whole ? of.worth : parseTokens(text)
  const fault = amount === null ? say.notAmount : amount > of.worth ? words.overWorth : ''
  return (
    <Dialog
      title={words.unbond}
      isOpen={isOpen}
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

function Redelegate({ of, isOpen, cancel, go }: Asking & { of: Unbonding; go: (to: Picked) => void }) {
  const [to, setTo] = useState<Picked | null>(null)
  return (
    <Dialog title={words.redelegate} isOpen={isOpen} close={cancel} isReady={to !== null} go={() => to && go(to)}>
      <p className="soft">{words.redelegateMeans(formatTokens(of.worth))}</p>
      <PickNode role={of.role} change={setTo} />
    </Dialog>
  )
}
