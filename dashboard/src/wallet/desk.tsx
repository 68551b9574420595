import { lazy, useState } from 'react'
import { Link } from 'react-router'
import type { Address } from 'viem'
import { ROLES } from '../lib/enums'
import { Fault, Figure, Loading, Notice, OnDemand, Tokens } from '../parts/basics'
import { Shown } from '../parts/dialog'
import { Watch } from '../parts/watch'
import * as say from '../strings'
import { Connected } from './connect'
import { Duties } from './duties'
import { useOwn } from './own'
import { isBusy, SendingNotice, useApproved, useCalls, useSending } from './sending'
import { OwnNode, Register, type Staking } from './stake'

const ProfileForm = lazy(() => import('./profile'))
const words = say.desk

/** The connected account's nodes, and the actions on them. */
export default function OwnDesk() {
  return <Connected>{(account) => <Desk account={account} />}</Connected>
}

function Desk({ account }: { account: Address }) {
  const { data: own, error, refetch, isPlaceholderData: isOther } = useOwn(account)
  const [drafts] = useState(() => new Map<string, string>())
  const flow = useSending()
  const { sending, send, reset } = flow
  const { staking, tasks } = useCalls()
  const approvals = { account, contract: 'staking' } as const
  const approved = useApproved(approvals)
  const fault = error && <Fault error={error} retry={() => void refetch()} />
  if (!own) return fault ?? <Loading />

  const total = (field: 'own' | 'claimable') => own.nodes.reduce((sum, one) => sum + one[field], 0n)
  const busy = isBusy(sending)
  const forms: Staking = {
    balance: own.balance,
    busy,
    drafts,
    reset,
    send: (name, amount, ...args) => {
      const call = staking(name, ...args)
      return amount > 0n ? send(...approved(amount, call)) : send(call)
    },
  }
  const missing = ROLES.filter((role) => !own.nodes.some((one) => one.role === role))
  const figures = (
    <>
      <dl className="figures">
        <Figure name={say.balance} value={<Tokens of={own.balance} />} />
        <Figure name={words.own} value={<Tokens of={total('own')} />} beside={words.ownMeans} />
        <Figure
          name={words.claimable}
          value={<Tokens of={total('claimable')} />}
          beside={<Link to="/portfolio">{words.toPortfolio}</Link>}
        />
      </dl>
      <SendingNotice of={flow} approvals={approvals} />
    </>
  )
  return (
    <>
      {fault}
      {isOther && <Loading />}
      <Shown when={!isOther}>
        {own.nodes.length === 0 ? (
          <>
            <Notice kind="wait">{words.noNode}</Notice>
            {figures}
          </>
        ) : (
          <Duties
            account={account}
            roles={own.nodes.map((one) => one.role)}
            busy={busy}
            release={(task) => void send(tasks('releaseBond', BigInt(task), account))}
          >
            {figures}
          </Duties>
        )}
        <Shown when={own.nodes.length > 0}>
          <Watch of={{ node: account }} />
          <OnDemand open={say.profile.open}>
            <ProfileForm account={account} />
          </OnDemand>
        </Shown>
        {own.nodes.map((one) => (
          <OwnNode key={one.role} account={account} own={own} node={one} {...forms} />
        ))}
        {missing.length > 0 && <Register key={missing.join()} roles={missing} {...forms} />}
      </Shown>
    </>
  )
}
