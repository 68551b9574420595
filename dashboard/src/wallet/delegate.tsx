/** Delegates to a node: an estimate, an approval by signature or by transaction, then the delegation. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { encodeAbiParameters, keccak256, numberToHex, type Address } from 'viem'
import { usePublicClient, useReadContract } from 'wagmi'
import type { Schemas } from '../api/client'
import { stakingAbi } from '../generated/abi'
import { same } from '../lib/accounts'
import { formatBps, formatEther, formatMillionths, formatTokens } from '../lib/amounts'
import { numberOf } from '../lib/enums'
import { formatDay, formatDuration } from '../lib/times'
import { earnedOf, whatIf } from '../lib/whatif'
import { yieldOf } from '../lib/yields'
import { Facts, Fault, Loading, Tokens, useNow } from '../parts/basics'
import { Radios } from '../parts/choice'
import { Field, readAmount } from '../parts/field'
import * as say from '../strings'
import { Connected } from './connect'
import { usePermit } from './permit'
import { useHoldings } from './positions'
import { useIsContract, useNetwork } from './provider'
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
  const { data, error, isPlaceholderData } = useHoldings(account)
  const flow = useSending()
  const { sending, send, reset } = flow
  const { staking } = useCalls()
  const approvals = { account, contract: 'staking' } as const
  const approved = useApproved(approvals)
  const isContract = useIsContract(account)
  const sign = usePermit(account)
  const [text, setText] = useState('')
  const [approval, setApproval] = useState<'signature' | 'transaction'>('signature')
  if (!data || isPlaceholderData) return error ? <Fault error={error} /> : <Loading />
  const { amount, fault } = readAmount(text, data.balance)
  const canGo = amount !== null && fault === '' && isContract !== undefined && !isBusy(sending)

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
      className="stack"
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
      {amount !== null && <Estimate account={account} amount={amount} node={node} />}
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

/** Gas in wei of the approval and the delegation together, at the present price; null until it is known.
 *
 * The delegation is estimated as if the approval stood: slot 1 of the token has all approvals (`ConsiliumToken.sol`).
 */
function useGas(account: Address, amount: bigint, node: Schemas['Node']) {
  const network = useNetwork()
  const client = usePublicClient()
  const { staking, approve } = useCalls()
  return useQuery({
    queryKey: ['gas', account, String(amount), node.node, node.role],
    enabled: client !== undefined,
    retry: false,
    queryFn: async () => {
      if (!client) throw new Error(say.wallet.noNode)
      const pair = [{ type: 'address' }, { type: 'bytes32' }] as const
      const ofOwner = keccak256(encodeAbiParameters(pair, [account, numberToHex(1, { size: 32 })]))
      const slot = keccak256(encodeAbiParameters(pair, [network.staking, ofOwner]))
      const stateDiff = [{ slot, value: numberToHex(amount, { size: 32 }) }]
      const delegation = staking('delegate', node.node, numberOf(node.role), amount)
      const [approval, delegated, price] = await Promise.all([
        client.estimateContractGas({ ...approve('staking', amount), account }),
        client.estimateContractGas({ ...delegation, account, stateOverride: [{ address: network.token, stateDiff }] }),
        client.getGasPrice(),
      ])
      return (approval + delegated) * price
    },
  })
}

function Estimate({ account, amount, node }: { account: Address; amount: bigint; node: Schemas['Node'] }) {
  const network = useNetwork()
  const gas = useGas(account, amount, node)
  const { data: period } = useReadContract({
    address: network.staking,
    abi: stakingAbi,
    functionName: 'unbondingPeriod',
  })
  const now = useNow()
  const pool = { active: BigInt(node.active), locked: BigInt(node.locked), assets: BigInt(node.assets) }
  const would = whatIf(amount, pool)
  const yields = [node, node.quarter].flatMap((one) => {
    const found = yieldOf(one)
    return found ? [{ days: Math.max(1, Math.round(found.seconds / 86_400)), net: found.net }] : []
  })
  const aYear = yieldOf(node)?.aYear ?? null
  const known = yields.filter((one, at) => yields.findIndex(({ days }) => days === one.days) === at)
  const notice = period === undefined ? '…' : formatDuration(period)
  return (
    <section aria-label={words.whatIf}>
      <h3>{words.whatIf}</h3>
      <Facts
        of={[
          [words.atRisk, words.atMost(formatTokens(would.atRisk))],
          [words.unlock, period === undefined ? '…' : words.unlockAt(notice, formatDay(now + period))],
          ...known.map(({ days, net }) => [words.earned(days), formatTokens(earnedOf(amount, net))] as const),
          [words.aYear, aYear === null ? say.decide.noRate : formatTokens(earnedOf(amount, aYear))],
          [words.part, formatMillionths(would.part)],
          [words.commission, `${formatBps(node.commission_bps)}, ${say.decide.commissionCap(notice)}`],
          [words.gas, gas.error ? words.noGas : gas.data === undefined ? '…' : words.ether(formatEther(gas.data))],
        ]}
      />
      <p className="soft small">{words.promises}</p>
    </section>
  )
}
