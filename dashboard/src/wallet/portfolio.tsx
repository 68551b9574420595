import { useState } from 'react'
import type { Address } from 'viem'
import { stakingAbi } from '../generated/abi'
import { formatTokens, parseTokens } from '../lib/amounts'
import { Account, Ago, Card, Fault, Figure, Loading, Tokens, useNow } from '../parts/basics'
import { Choice } from '../parts/choice'
import { Dialog } from '../parts/dialog'
import { Table } from '../parts/table'
import { sharesFor } from '../lib/whatif'
import { say } from '../strings'
import { Connect } from './connect'
import { isAccount } from '../lib/accounts'
import { numberOf, ROLE_NAMES } from '../lib/enums'
import { useHoldings, type Holding, type Holdings, type Unbonding } from './positions'
import { usePlace, WithWallet } from './provider'
import { isBusy, SendingNotice, useSending, type Call } from './sending'
import { AccountBooks } from '../pages/account'

const words = say.portfolio

/** What the connected account has, and what it can do with it. */
export default function Own() {
  return (
    <WithWallet>
      <Connect>{(account) => <Of account={account} key={account} />}</Connect>
    </WithWallet>
  )
}

function Of({ account }: { account: Address }) {
  const { data, error, refetch } = useHoldings(account)
  return (
    <>
      {error && <Fault error={error} retry={() => void refetch()} />}
      {data ? <Positions of={data} /> : !error && <Loading />}
      {data && !data.fromEvents && <AccountBooks account={account} only="history" />}
    </>
  )
}

type Asked = { unbond: Holding } | { redelegate: Unbonding }

function Positions({ of }: { of: Holdings }) {
  const { sending, send, reset } = useSending()
  const [asked, setAsked] = useState<Asked | null>(null)
  const place = usePlace()
  const now = useNow()
  const busy = isBusy(sending)
  const staking = (functionName: string, args: readonly unknown[]): Call => ({
    address: place.staking,
    abi: stakingAbi,
    functionName,
    args,
  })
  const ask = (what: Asked) => {
    reset()
    setAsked(what)
  }
  const total = (amounts: bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n)
  const claimable = of.holdings.filter((one) => one.claimable > 0n)
  const columns = words.columns
  return (
    <>
      {of.fromEvents && <p className="notice wait">{words.fromEvents}</p>}
      <dl className="figures">
        <Figure name={words.wallet} value={<Tokens of={of.balance} />} />
        <Figure name={words.staked} value={<Tokens of={total(of.holdings.map((one) => one.worth))} />} />
        <Figure name={words.claimable} value={<Tokens of={total(claimable.map((one) => one.claimable))} />} />
        <Figure name={words.unbonding} value={<Tokens of={total(of.unbondings.map((one) => one.worth))} />} />
      </dl>
      <SendingNotice of={sending} />
      <Card title={words.holdings}>
        <Table
          caption={words.holdings}
          rows={of.holdings}
          name={(one) => one.node + one.role}
          empty={words.none}
          columns={[
            { name: columns.node, cell: (one) => <Account of={one.node} as={one.role} /> },
            { name: columns.role, cell: (one) => say.role[one.role] },
            { name: columns.worth, number: true, cell: (one) => <Tokens of={one.worth} /> },
            { name: columns.claimable, number: true, cell: (one) => <Tokens of={one.claimable} /> },
            {
              name: columns.actions,
              cell: (one) => (
                <div className="tools">
                  <button
                    type="button"
                    disabled={busy || one.claimable === 0n}
                    onClick={() => void send(staking('claim', [one.node, numberOf(one.role)]))}
                  >
                    {words.claim}
                  </button>
                  <button
                    type="button"
                    disabled={busy || one.shares === 0n}
                    onClick={() => ask({ unbond: one })}
                  >
                    {words.unbond}
                  </button>
                </div>
              ),
            },
          ]}
        />
        {claimable.length > 1 && (
          <div>
            <button
              type="button"
              className="main"
              disabled={busy}
              onClick={() =>
                void send(
                  staking('claimMany', [
                    claimable.map((one) => ({ node: one.node, role: numberOf(one.role) })),
                  ]),
                )
              }
            >
              {words.claimAll}
            </button>
          </div>
        )}
      </Card>
      <Card title={words.unbonding} means={words.unbondingMeans}>
        <Table
          caption={words.unbonding}
          rows={of.unbondings}
          name={(one) => String(one.request)}
          empty={say.account.noUnbonding}
          columns={[
            { name: columns.node, cell: (one) => <Account of={one.node} as={one.role} /> },
            { name: columns.worth, number: true, cell: (one) => <Tokens of={one.worth} /> },
            { name: say.account.matures, cell: (one) => <Ago of={one.maturesAt} /> },
            {
              name: columns.actions,
              cell: (one) => (
                <div className="tools">
                  <button
                    type="button"
                    disabled={busy || one.maturesAt > now}
                    onClick={() => void send(staking('withdraw', [one.request]))}
                  >
                    {words.withdraw}
                  </button>
                  <button
                    type="button"
                    disabled={busy || one.maturesAt > now}
                    onClick={() => ask({ redelegate: one })}
                  >
                    {words.redelegate}
                  </button>
                </div>
              ),
            },
          ]}
        />
      </Card>
      {asked && 'unbond' in asked && (
        <Unbond
          of={asked.unbond}
          cancel={() => setAsked(null)}
          go={(shares) => {
            setAsked(null)
            void send(staking('startUnbonding', [asked.unbond.node, numberOf(asked.unbond.role), shares]))
          }}
        />
      )}
      {asked && 'redelegate' in asked && (
        <Redelegate
          of={asked.redelegate}
          cancel={() => setAsked(null)}
          go={(node, role) => {
            setAsked(null)
            void send(staking('redelegate', [asked.redelegate.request, node, role]))
          }}
        />
      )}
    </>
  )
}

function Unbond({ of, cancel, go }: { of: Holding; cancel: () => void; go: (shares: bigint) => void }) {
  const [text, setText] = useState(formatTokens(of.worth))
  const amount = text === formatTokens(of.worth) ? of.worth : parseTokens(text)
  const bad = amount === null || (amount > of.worth && text !== formatTokens(of.worth))
  return (
    <Dialog
      title={words.unbond}
      close={cancel}
      isReady={!bad}
      go={() => {
        if (amount !== null) go(sharesFor(amount, of))
      }}
    >
      <p className="soft">{words.unbondingMeans}</p>
      <label>
        {words.howMuch(formatTokens(of.worth))}
        <input
          inputMode="decimal"
          autoComplete="off"
          value={text}
          aria-invalid={bad}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
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
        {say.nodes.columns.node}
        <input
          value={node}
          autoComplete="off"
          spellCheck={false}
          placeholder={say.account.lookHint}
          aria-invalid={node !== '' && bad}
          onChange={(event) => setNode(event.target.value)}
        />
      </label>
      <Choice name={say.nodes.role} value={role} of={ROLE_NAMES} change={setRole} />
    </Dialog>
  )
}
