/** Backs a node: what it would come to, then an approval by signature or by transaction, then the delegation. */
import { useState } from 'react'
import { parseSignature, type Abi, type Address } from 'viem'
import { useConfig } from 'wagmi'
import { getPublicClient, signTypedData } from 'wagmi/actions'
import type { Schemas } from '../api/client'
import { stakingAbi, tokenAbi } from '../generated/abi'
import { formatMillionths, formatTokens, parseTokens } from '../lib/amounts'
import { whatIf } from '../lib/whatif'
import { Fault, Facts, Loading, Tokens } from '../parts/basics'
import { say } from '../strings'
import { Connect } from './connect'
import { refusal } from './errors'
import { numberOf } from '../lib/enums'
import { useHoldings } from './positions'
import { usePlace, WithWallet } from './provider'
import { isBusy, SendingNotice, useSending, type Call } from './sending'

const words = say.delegate
const PERMIT_SECONDS = 1_800n

export default function Delegate({ node }: { node: Schemas['Node'] }) {
  return (
    <WithWallet>
      <Connect>{(account) => <Form account={account} node={node} />}</Connect>
    </WithWallet>
  )
}

function Form({ account, node }: { account: Address; node: Schemas['Node'] }) {
  const place = usePlace()
  const config = useConfig()
  const { data, error } = useHoldings(account)
  const { sending, send, reset } = useSending()
  const [text, setText] = useState('')
  const [bySignature, setBySignature] = useState(true)
  const [declined, setDeclined] = useState('')
  const amount = parseTokens(text)
  if (error) return <Fault error={error} />
  if (!data) return <Loading />
  const tooMuch = amount !== null && amount > data.balance
  const at = node.node as Address
  const role = numberOf(node.role)
  const staking = { address: place.staking, abi: stakingAbi as Abi }

  async function go(wanted: bigint) {
    setDeclined('')
    const calls: Call[] = []
    if (bySignature) {
      try {
        const permit = await signed(wanted)
        calls.push({ ...staking, functionName: 'delegateWithPermit', args: [at, role, wanted, ...permit] })
      } catch (refused) {
        setDeclined(refusal(refused))
        return
      }
    } else {
      calls.push(
        {
          address: place.token,
          abi: tokenAbi,
          functionName: 'approve',
          args: [place.staking, wanted],
        },
        { ...staking, functionName: 'delegate', args: [at, role, wanted] },
      )
    }
    if (await send(...calls)) setText('')
  }

  /** ERC-2612. Throws what the wallet refuses with. */
  async function signed(value: bigint): Promise<readonly [bigint, number, `0x${string}`, `0x${string}`]> {
    const client = getPublicClient(config, { chainId: place.chainId })
    if (!client) throw new Error(say.wallet.noNode)
    const token = { address: place.token, abi: tokenAbi } as const
    const [nonce, name, block] = await Promise.all([
      client.readContract({ ...token, functionName: 'nonces', args: [account] }),
      client.readContract({ ...token, functionName: 'name' }),
      client.getBlock(),
    ])
    const deadline = block.timestamp + PERMIT_SECONDS
    const signature = await signTypedData(config, {
      account,
      domain: { name, version: '1', chainId: place.chainId, verifyingContract: place.token },
      types: {
        Permit: [
          { name: 'owner', type: 'address' },
          { name: 'spender', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'nonce', type: 'uint256' },
          { name: 'deadline', type: 'uint256' },
        ],
      },
      primaryType: 'Permit',
      message: { owner: account, spender: place.staking, value, nonce, deadline },
    })
    const { r, s, yParity } = parseSignature(signature)
    return [deadline, 27 + yParity, r, s]
  }

  const held = data.holdings.find(
    (one) => one.node.toLowerCase() === node.node.toLowerCase() && one.role === node.role,
  )
  return (
    <form
      className="card"
      onSubmit={(event) => {
        event.preventDefault()
        if (amount !== null && !tooMuch) void go(amount)
      }}
    >
      <Facts
        of={[
          [words.balance, <Tokens key="balance" of={data.balance} />],
          [words.held, <Tokens key="held" of={held?.worth ?? 0n} />],
        ]}
      />
      <label>
        {words.amount}
        <input
          inputMode="decimal"
          autoComplete="off"
          value={text}
          aria-invalid={(text !== '' && amount === null) || tooMuch}
          aria-describedby="delegate-fault"
          onChange={(event) => {
            setText(event.target.value)
            reset()
          }}
        />
      </label>
      <p id="delegate-fault" className="bad small" role="status">
        {text !== '' && amount === null ? words.noAmount : tooMuch ? words.tooMuch : ''}
      </p>
      {amount !== null && <If amount={amount} node={node} />}
      <fieldset className="choices">
        <legend>{words.approve}</legend>
        <label>
          <input type="radio" name="approve" checked={bySignature} onChange={() => setBySignature(true)} />{' '}
          {words.bySignature}
        </label>
        <label>
          <input type="radio" name="approve" checked={!bySignature} onChange={() => setBySignature(false)} />{' '}
          {words.byTransaction}
        </label>
      </fieldset>
      <div>
        <button type="submit" className="main" disabled={amount === null || tooMuch || isBusy(sending)}>
          {words.go}
        </button>
      </div>
      {declined && (
        <p className="notice bad" role="alert">
          {declined}
        </p>
      )}
      <SendingNotice of={sending} />
    </form>
  )
}

function If({ amount, node }: { amount: bigint; node: Schemas['Node'] }) {
  const { since, until, net } = node.realised_yield
  const pool = { active: BigInt(node.active), locked: BigInt(node.locked), assets: BigInt(node.assets) }
  const would = whatIf(amount, pool, net)
  return (
    <section aria-label={words.whatIf}>
      <h3>{words.whatIf}</h3>
      <Facts
        of={[
          [words.part, formatMillionths(would.part)],
          [words.brought(Math.max(1, Math.round((until - since) / 86_400))), formatTokens(would.brought)],
          [words.atRisk, formatTokens(would.atRisk)],
        ]}
      />
      <p className="soft small">{words.promises}</p>
    </section>
  )
}
