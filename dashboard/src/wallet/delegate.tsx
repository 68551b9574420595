/** Delegates to a node: an estimate, an approval by signature or by transaction, then the delegation. */
import { useState } from 'react'
import type { Address } from 'viem'
import type { Schemas } from '../api/client'
import { same } from '../lib/accounts'
import { formatMillionths, formatTokens } from '../lib/amounts'
import { numberOf } from '../lib/enums'
import { whatIf } from '../lib/whatif'
import { Facts, Fault, Loading, Tokens } from '../parts/basics'
import { Radios } from '../parts/choice'
import { Field, readAmount } from '../parts/field'
import { say } from '../strings'
import { Connected } from './connect'
import { usePermit } from './permit'
import { useHoldings } from './positions'
import { useIsContract } from './provider'
import { isBusy, SendingNotice, useApproved, useCalls, useSending, type Step } from './sending'

const words = say.delegate
const APPROVALS = [
  ['signature', words.bySignature],
  ['transaction', words.byTransaction],
] as const

export default function Delegate({ node }: { node: Schemas['Node'] }) {
  return <Connected>{(account) => <Form account={account} node={node} />}</Connected>
}

function Form({ account, node }: { account: Address; node: Schemas['Node'] }) {
  const { data, error } = useHoldings(account)
  const flow = useSending()
  const { sending, send, reset } = flow
  const { staking } = useCalls()
  const approvals = { account, contract: 'staking' } as const
  const approved = useApproved(approvals)
  const isContract = useIsContract(account)
  const sign = usePermit(account)
  const [text, setText] = useState('')
  const [approval, setApproval] = useState<'signature' | 'transaction'>('signature')
  if (error) return <Fault error={error} />
  if (!data) return <Loading />
  const { amount, fault } = readAmount(text, data.balance)
  const canGo = amount !== null && fault === '' && !isBusy(sending)

  function stepsFor(value: bigint): Step[] {
    const args = [node.node, numberOf(node.role), value] as const
    if (approval === 'signature' && !isContract)
      return [async () => staking('delegateWithPermit', ...args, ...(await sign(value)))]
    return approved(value, staking('delegate', ...args))
  }

  async function go(value: bigint) {
    if (await send(...stepsFor(value))) setText('')
  }

  const held = data.holdings.find((one) => same(one.node, node.node) && one.role === node.role)
  return (
    <form
      className="card"
      onSubmit={(event) => {
        event.preventDefault()
        if (canGo) void go(amount)
      }}
    >
      <Facts
        of={[
          [say.balance, <Tokens key="balance" of={data.balance} />],
          [words.held, <Tokens key="held" of={held?.worth ?? 0n} />],
        ]}
      />
      <Field
        name={say.amount}
        text={text}
        fault={fault}
        change={(entry) => {
          setText(entry)
          reset()
        }}
      />
      {amount !== null && <Estimate amount={amount} node={node} />}
      {isContract ? (
        <p className="soft small">{words.contractWallet}</p>
      ) : (
        <Radios name={words.approve} value={approval} of={APPROVALS} change={setApproval} />
      )}
      <div>
        <button type="submit" className="main" disabled={!canGo}>
          {words.go}
        </button>
      </div>
      <SendingNotice of={flow} approvals={approvals} />
    </form>
  )
}

function Estimate({ amount, node }: { amount: bigint; node: Schemas['Node'] }) {
  const { since, until, net } = node.realised_yield
  const pool = { active: BigInt(node.active), locked: BigInt(node.locked), assets: BigInt(node.assets) }
  const would = whatIf(amount, pool, net)
  return (
    <section aria-label={words.whatIf}>
      <h3>{words.whatIf}</h3>
      <Facts
        of={[
          [words.part, formatMillionths(would.part)],
          [words.earned(Math.max(1, Math.round((until - since) / 86_400))), formatTokens(would.earned)],
          [words.atRisk, formatTokens(would.atRisk)],
        ]}
      />
      <p className="soft small">{words.promises}</p>
    </section>
  )
}
