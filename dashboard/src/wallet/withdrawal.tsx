/** A node's withdrawal address: the form that sets it, and its actions on the node's own stake. */
import { useState } from 'react'
import { getContract, isAddress, type Address, type PublicClient } from 'viem'
import type { Role, Schemas } from '../api/client'
import type { Config } from '../api/config'
import { stakingAbi } from '../generated/abi'
import { same } from '../lib/accounts'
import { numberOf, ROLES } from '../lib/enums'
import { formatDuration } from '../lib/times'
import { Account, Facts, Fault, Loading, Time, Tokens, useNow } from '../parts/basics'
import { Dialog } from '../parts/dialog'
import { Field } from '../parts/field'
import { Table } from '../parts/table'
import { PaidTo, type Payee } from '../parts/withdrawal'
import * as say from '../strings'
import { Connected } from './connect'
import { payeeOf } from './own'
import { useChain } from './provider'
import { isBusy, SendingNotice, useCalls, useSending, type Call } from './sending'

const words = say.withdrawal
const { portfolio, columns } = say

interface Setting {
  node: string
  role: Role
  payee: Payee
  /** Seconds. */
  period: number
  busy: boolean
  send: (call: Call) => Promise<unknown>
}

export function SetAddress({ node, role, payee, period, busy, send }: Setting) {
  const { staking } = useCalls()
  const [isOpen, setOpen] = useState(false)
  const [text, setText] = useState('')
  const typed = text.trim()
  const isGood = isAddress(typed)
  const set = (to: string) => send(staking('setWithdrawalAddress', node, numberOf(role), to))
  return (
    <div className="tools">
      <button
        type="button"
        aria-label={`${words.set}: ${say.role[role]}`}
        disabled={busy}
        onClick={() => setOpen(true)}
      >
        {words.set}
      </button>
      {payee.current && payee.next && (
        <button type="button" disabled={busy} onClick={() => payee.current && void set(payee.current)}>
          {words.keep}
        </button>
      )}
      <Dialog
        title={words.set}
        isOpen={isOpen}
        isReady={isGood}
        close={() => setOpen(false)}
        go={() => {
          setOpen(false)
          void set(typed).then((done) => done && setText(''))
        }}
      >
        <p>{payee.current ? words.change(formatDuration(period)) : words.first}</p>
        <Field
          name={words.field}
          inputMode="text"
          text={text}
          fault={typed === '' || isGood ? '' : words.bad}
          change={setText}
        />
      </Dialog>
    </div>
  )
}

interface Owed {
  payee: Payee
  period: number
  shares: bigint
  worth: bigint
  claimable: bigint
  requests: { request: bigint; worth: bigint; maturesAt: number }[]
}

async function read(client: PublicClient, network: Config, node: Address, role: Role): Promise<Owed> {
  const staking = getContract({ address: network.staking, abi: stakingAbi, client }).read
  const of = [node, numberOf(role)] as const
  const [paid, period, [shares, worth, claimable], count] = await Promise.all([
    staking.withdrawalAddressOf(of),
    staking.unbondingPeriod(),
    staking.positionOf([node, ...of]),
    staking.requestCount([node]),
  ])
  const requests = await Promise.all(
    Array.from({ length: Number(count) }, async (_, index) => {
      const [about, now] = await staking.requestOf([node, BigInt(index)])
      const isOwn = about.shares > 0n && same(about.node, node) && ROLES[about.role] === role
      return isOwn ? { request: BigInt(index), worth: now, maturesAt: about.maturesAt } : null
    }),
  )
  const own = requests.filter((one) => one !== null)
  return { payee: payeeOf(paid), period, shares, worth, claimable, requests: own }
}

/** The page of a node has it for whoever holds the withdrawal address. */
export default function Acting({ node: { node, role } }: { node: Schemas['Node'] }) {
  return <Connected>{(account) => <Owner account={account} node={node as Address} role={role} />}</Connected>
}

function Owner({ account, node, role }: { account: Address; node: Address; role: Role }) {
  const { data, error } = useChain(`owed as ${role}`, node, (client, network) => read(client, network, node, role))
  const flow = useSending()
  const { staking } = useCalls()
  const now = useNow()
  if (!data) return error ? <Fault error={error} /> : <Loading />
  const { payee, shares, claimable } = data
  const of = numberOf(role)
  const busy = isBusy(flow.sending) || !same(account, payee.current ?? undefined)
  const act = (name: string, ...args: readonly unknown[]) => void flow.send(staking(name, node, ...args))
  return (
    <>
      {payee.current && !same(account, payee.current) && (
        <p className="notice">
          <span>
            {words.notYours} <Account of={payee.current} />
          </span>
        </p>
      )}
      <p className="soft small">{words.means}</p>
      <Facts
        of={[
          [words.title, <PaidTo key="payee" of={payee} />],
          [say.decide.own, <Tokens key="worth" of={data.worth} />],
          [portfolio.claimable, <Tokens key="claimable" of={claimable} />],
        ]}
      />
      <SendingNotice of={flow} />
      <div className="tools">
        <button type="button" disabled={busy || claimable === 0n} onClick={() => act('claimFor', of)}>
          {portfolio.claim}
        </button>
        <button type="button" disabled={busy || shares === 0n} onClick={() => act('startUnbondingFor', of, shares)}>
          {portfolio.unbond}
        </button>
      </div>
      {data.requests.length > 0 && (
        <Table
          caption={portfolio.unbonding}
          rows={data.requests}
          keyOf={(one) => String(one.request)}
          columns={[
            { tokens: columns.worth, of: (one) => one.worth },
            { text: columns.matures, of: (one) => <Time of={one.maturesAt} /> },
            {
              text: columns.actions,
              of: (one) => (
                <button
                  type="button"
                  disabled={busy || one.maturesAt > now}
                  onClick={() => act('withdrawFor', one.request)}
                >
                  {portfolio.withdraw}
                </button>
              ),
            },
          ]}
        />
      )}
      <SetAddress node={node} role={role} payee={payee} period={data.period} busy={busy} send={flow.send} />
    </>
  )
}
