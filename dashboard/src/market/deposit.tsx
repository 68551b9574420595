/** A deposit into a channel: by a signature that the server sends, or by the buyer's own transactions. */
import { useState } from 'react'
import type { Address } from 'viem'
import { useConfig } from 'wagmi'
import { readContract } from 'wagmi/actions'
import { modelSharesAbi, tokenAbi } from '../generated/abi'
import { formatExactly, formatTokens } from '../lib/amounts'
import { Radios } from '../parts/choice'
import { Field, readAmount } from '../parts/field'
import * as say from '../strings'
import { useBalance, useNetwork, useRefusal } from '../wallet/provider'
import { isBusy, SendingNotice, useSending, type Call } from '../wallet/sending'
import { useSignedDeposit, type Place } from './account'

const words = say.market
const HOW = [
  ['signature', words.bySignature],
  ['transaction', words.byTransaction],
] as const

interface Of {
  buyer: Address
  place: Place
  /** The smallest deposit that the server sends. */
  least: bigint
  again: () => Promise<void>
}

export function Deposit({ buyer, place, least, again }: Of) {
  const network = useNetwork()
  const wagmi = useConfig()
  const refusal = useRefusal()
  const balance = useBalance(buyer)
  const flow = useSending()
  const sign = useSignedDeposit(buyer, place)
  const [text, setText] = useState('')
  const [how, setHow] = useState<(typeof HOW)[number][0]>('signature')
  const [signed, setSigned] = useState<'waits' | 'done' | Error>()
  const { amount, fault } = readAmount(text, balance)
  const isSmall = how === 'signature' && amount !== null && amount < least
  const busy = isBusy(flow.sending) || signed === 'waits'

  async function bySignature(value: bigint) {
    setSigned('waits')
    try {
      await sign(value)
      setSigned('done')
      setText('')
    } catch (error) {
      setSigned(new Error(refusal(error)))
    }
    await again()
  }

  async function byTransaction(value: bigint) {
    const spender = network.modelShares
    const token = { address: network.token, abi: tokenAbi } as const
    const approved = await readContract(wagmi, { ...token, functionName: 'allowance', args: [buyer, spender] })
    const approve: Call = { ...token, functionName: 'approve', args: [spender, value] }
    const deposit: Call = {
      address: spender,
      abi: modelSharesAbi,
      functionName: 'deposit',
      args: [BigInt(place.task), place.server, value],
    }
    if (await flow.send(...(approved >= value ? [deposit] : [approve, deposit]))) setText('')
    await again()
  }

  return (
    <form
      className="stack"
      aria-label={words.deposit}
      onSubmit={(event) => {
        event.preventDefault()
        if (amount === null) return
        void (how === 'signature' ? bySignature(amount) : byTransaction(amount))
      }}
    >
      <h3>{words.deposit}</h3>
      <p className="soft small">{words.depositMeans}</p>
      <Field
        name={say.amount}
        text={text}
        fault={fault || (isSmall ? words.least(formatExactly(least)) : '')}
        change={(entry) => {
          setText(entry)
          setSigned(undefined)
          flow.reset()
        }}
      />
      {balance !== undefined && (
        <p className="soft small">
          {say.balance}: {formatTokens(balance)}
        </p>
      )}
      <Radios name={words.how} value={how} of={HOW} change={setHow} />
      <div>
        <button type="submit" disabled={busy || amount === null || fault !== '' || isSmall}>
          {words.depositGo}
        </button>
      </div>
      <SendingNotice of={flow} />
      <div role={signed instanceof Error ? 'alert' : 'status'}>
        {signed === 'waits' && <div className="notice wait">{words.depositing}</div>}
        {signed === 'done' && <div className="notice good">{words.depositDone}</div>}
        {signed instanceof Error && <div className="notice bad">{signed.message}</div>}
      </div>
    </form>
  )
}
