/** Sends transactions: a simulation, the wallet's signature, the receipt, with words for each state. */
import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import type { Abi, Address, Hash, PublicClient, TransactionReceipt } from 'viem'
import { useConfig, useConnection, type Config } from 'wagmi'
import { getPublicClient, simulateContract, writeContract } from 'wagmi/actions'
import { stakingAbi, tasksAbi, tokenAbi } from '../generated/abi'
import { Hash as ShownHash } from '../parts/basics'
import { say } from '../strings'
import { refusal } from './errors'
import { usePlace } from './provider'

export interface Call {
  address: Address
  abi: Abi
  functionName: string
  args: readonly unknown[]
}

/** Makes calls of the contracts. `approve` lets a contract take that many tokens. */
export function useCalls() {
  const place = usePlace()
  const of =
    (address: Address, abi: Abi) =>
    (functionName: string, ...args: readonly unknown[]): Call => ({ address, abi, functionName, args })
  return {
    staking: of(place.staking, stakingAbi),
    tasks: of(place.tasks, tasksAbi),
    approve: (contract: 'staking' | 'tasks', amount: bigint) =>
      of(place.token, tokenAbi)('approve', place[contract], amount),
  }
}

export type Sending =
  | { state: 'idle' }
  | { state: 'checking' | 'signing' }
  | { state: 'pending'; hash: Hash }
  | { state: 'confirmed'; hash: Hash; block: bigint; replaced: boolean }
  | { state: 'failed'; why: string; hash?: Hash }

const TIMEOUT = 180_000 // milliseconds. A transaction may still be mined later

// An estimate holds for its own block. Rewards vest by the second and storage slots become non-zero, so the same call may
// need more gas one block later. Unused gas is not paid.
const SPARE_GAS = 100_000n
const HIGHEST_GAS = 1n << 24n // of a transaction (EIP-7825)

function gasLimit(estimate: bigint): bigint {
  const limit = (estimate * 3n) / 2n + SPARE_GAS
  return limit < HIGHEST_GAS ? limit : HIGHEST_GAS
}

/** The chain's node. Throws an error if neither the place nor the wallet has one. */
function nodeOf(config: Config): PublicClient {
  const client = getPublicClient(config)
  if (!client) throw new Error(say.wallet.noNode)
  return client
}

/** The reason for a reverted call. The receipt does not have it, so the call is simulated at its block. */
async function whyReverted(config: Config, call: Call & { account: Address; blockNumber: bigint }): Promise<string> {
  try {
    await nodeOf(config).simulateContract(call)
    return say.sending.outOfGas
  } catch (error) {
    return refusal(error)
  }
}

/** `send` sends calls one after another, each after the receipt of the one before. It resolves to the last receipt, or to
 * null if a call failed.
 */
export function useSending(): {
  sending: Sending
  send: (...calls: readonly Call[]) => Promise<TransactionReceipt | null>
  reset: () => void
} {
  const config = useConfig()
  const place = usePlace()
  const client = useQueryClient()
  const { address } = useConnection()
  const [sending, setSending] = useState<Sending>({ state: 'idle' })

  const one = useCallback(
    async (call: Call, account: Address): Promise<TransactionReceipt | null> => {
      let hash: Hash | undefined
      let replaced: 'repriced' | 'cancelled' | 'replaced' | undefined
      try {
        setSending({ state: 'checking' })
        const { request } = await simulateContract(config, { ...call, account, chainId: place.chainId })
        const gas = gasLimit(await nodeOf(config).estimateContractGas({ ...call, account }))
        setSending({ state: 'signing' })
        hash = await writeContract(config, { ...request, gas })
        setSending({ state: 'pending', hash })
        // Not wagmi's function, which throws without a reason if a transaction was reverted.
        const receipt = await nodeOf(config).waitForTransactionReceipt({
          hash,
          timeout: TIMEOUT,
          onReplaced: (replacement) => {
            replaced = replacement.reason
          },
        })
        const by = receipt.transactionHash
        if (replaced === 'cancelled' || replaced === 'replaced') {
          setSending({ state: 'failed', why: say.sending[replaced], hash: by })
          return null
        }
        if (receipt.status === 'reverted') {
          setSending({
            state: 'failed',
            why: await whyReverted(config, { ...call, account, blockNumber: receipt.blockNumber }),
            hash: by,
          })
          return null
        }
        setSending({
          state: 'confirmed',
          hash: by,
          block: receipt.blockNumber,
          replaced: replaced === 'repriced',
        })
        return receipt
      } catch (error) {
        setSending({ state: 'failed', why: refusal(error), ...(hash ? { hash } : {}) })
        return null
      } finally {
        void client.invalidateQueries()
      }
    },
    [client, config, place.chainId],
  )

  const send = useCallback(
    async (...calls: readonly Call[]): Promise<TransactionReceipt | null> => {
      let receipt: TransactionReceipt | null = null
      if (!address) return receipt
      for (const call of calls) {
        receipt = await one(call, address)
        if (!receipt) return null
      }
      return receipt
    },
    [address, one],
  )
  return { sending, send, reset: useCallback(() => setSending({ state: 'idle' }), []) }
}

export function isBusy(sending: Sending): boolean {
  return sending.state === 'checking' || sending.state === 'signing' || sending.state === 'pending'
}

export function SendingNotice({ of }: { of: Sending }) {
  const kind = of.state === 'confirmed' ? 'good' : of.state === 'failed' ? 'bad' : 'wait'
  return (
    <div role={of.state === 'failed' ? 'alert' : 'status'}>
      {of.state !== 'idle' && (
        <div className={`notice ${kind}`} data-sending={of.state}>
          <span>
            {of.state === 'failed'
              ? of.why
              : of.state === 'confirmed'
                ? say.sending.confirmed(of.block, of.replaced)
                : say.sending[of.state]}
          </span>
          {'hash' in of && <ShownHash of={of.hash} />}
        </div>
      )}
    </div>
  )
}
