/** Sends transactions: a simulation, the wallet's signature, the receipt, with words for each state. */
import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import type { Abi, Address, Hash, PublicClient, TransactionReceipt } from 'viem'
import { useConfig, useConnection, useReadContract, type Config } from 'wagmi'
import { getPublicClient, simulateContract, writeContract } from 'wagmi/actions'
import { stakingAbi, tasksAbi, tokenAbi } from '../generated/abi'
import { formatTokens } from '../lib/amounts'
import { Hash as ShownHash } from '../parts/basics'
import * as say from '../strings'
import { refusal } from './errors'
import { useNetwork, useRefusal } from './provider'

export interface Call {
  address: Address
  abi: Abi
  functionName: string
  args: readonly unknown[]
}

/** Makes calls of the contracts. `approve` lets a contract take that many tokens. */
export function useCalls() {
  const network = useNetwork()
  const of =
    (address: Address, abi: Abi) =>
    (functionName: string, ...args: readonly unknown[]): Call => ({ address, abi, functionName, args })
  return {
    staking: of(network.staking, stakingAbi),
    tasks: of(network.tasks, tasksAbi),
    approve: (contract: 'staking' | 'tasks', amount: bigint) =>
      of(network.token, tokenAbi)('approve', network[contract], amount),
  }
}

/** A step of a flow: a call; or a function that has the owner sign first, and makes the call from the signature. It gets
 * the receipt of the step before.
 */
export type Step = Call | ((before: TransactionReceipt | null) => Promise<Call>)

/** `at`: the present act of the owner, and the number of all, from 1. */
export type Sending =
  | { state: 'idle' }
  | { state: 'permitting' | 'checking' | 'signing'; at: At }
  | { state: 'pending'; at: At; hash: Hash }
  | { state: 'confirmed'; hash: Hash; block: bigint; replaced: boolean }
  | { state: 'failed'; why: string; hash?: Hash }
  | { state: 'left' }
type At = readonly [act: number, of: number]

const TIMEOUT = 180_000 // milliseconds. A transaction may still be mined later

// An estimate holds for its own block. Rewards vest by the second and storage slots become non-zero, so the same call may
// need more gas one block later. Unused gas is not paid.
const SPARE_GAS = 100_000n
const HIGHEST_GAS = 1n << 24n // of a transaction (EIP-7825)

function gasLimit(estimate: bigint): bigint {
  const limit = (estimate * 3n) / 2n + SPARE_GAS
  return limit < HIGHEST_GAS ? limit : HIGHEST_GAS
}

/** The chain's node. Throws an error if neither the network nor the wallet has one. */
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

export interface Flow {
  sending: Sending
  send: (...steps: readonly Step[]) => Promise<TransactionReceipt | null>
  reset: () => void
  leave: () => void
}

interface Running {
  isLeft: boolean
  show: (now: Sending) => void
}

const actsOf = (steps: readonly Step[]) => steps.reduce((sum, one) => sum + (typeof one === 'function' ? 2 : 1), 0)

/** One flow at a time: `send` does its steps one after another, each after the receipt of the one before, and resolves to
 * the last receipt, or to null if a step failed. Meanwhile, a second `send` does nothing. `leave` stops waiting for a
 * wallet: no further step is done, but a request that the wallet already has may still be carried out.
 */
export function useSending(): Flow {
  const config = useConfig()
  const network = useNetwork()
  const client = useQueryClient()
  const { address } = useConnection()
  const words = useRefusal()
  const [sending, setSending] = useState<Sending>({ state: 'idle' })
  const running = useRef<Running | null>(null)

  const one = useCallback(
    async (
      step: Step,
      account: Address,
      at: At,
      flow: Running,
      before: TransactionReceipt | null,
    ): Promise<TransactionReceipt | null> => {
      let hash: Hash | undefined
      let replaced: 'repriced' | 'cancelled' | 'replaced' | undefined
      const { show } = flow
      const isLeft = () => flow.isLeft
      try {
        let act = at
        if (typeof step === 'function') {
          show({ state: 'permitting', at })
          act = [at[0] + 1, at[1]]
        }
        const call = typeof step === 'function' ? await step(before) : step
        show({ state: 'checking', at: act })
        const { request } = await simulateContract(config, { ...call, account, chainId: network.chainId })
        const gas = gasLimit(await nodeOf(config).estimateContractGas({ ...call, account }))
        if (isLeft()) return null
        show({ state: 'signing', at: act })
        hash = await writeContract(config, { ...request, gas })
        show({ state: 'pending', at: act, hash })
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
          show({ state: 'failed', why: say.sending[replaced], hash: by })
          return null
        }
        if (receipt.status === 'reverted') {
          const why = await whyReverted(config, { ...call, account, blockNumber: receipt.blockNumber })
          show({ state: 'failed', why, hash: by })
          return null
        }
        if (isLeft() && act[0] < act[1]) {
          show({ state: 'failed', why: say.sending.partly(...act), hash: by })
          return null
        }
        show({ state: 'confirmed', hash: by, block: receipt.blockNumber, replaced: replaced === 'repriced' })
        return receipt
      } catch (error) {
        // Sent: the chain may carry it out, whatever kept this page from hearing so.
        show({ state: 'failed', why: hash ? say.refused.late : words(error), ...(hash ? { hash } : {}) })
        return null
      } finally {
        void client.invalidateQueries()
      }
    },
    [client, config, network.chainId, words],
  )

  const send = useCallback(
    async (...steps: readonly Step[]): Promise<TransactionReceipt | null> => {
      let receipt: TransactionReceipt | null = null
      if (!address || running.current) return receipt
      const flow: Running = {
        isLeft: false,
        // After `leave` a transaction that the wallet sends after all is still told, unless another flow has begun.
        show: (now) => {
          if (running.current === flow || (running.current === null && 'hash' in now)) setSending(now)
        },
      }
      running.current = flow
      let act = 1
      for (const step of steps) {
        if (flow.isLeft) return null
        receipt = await one(step, address, [act, actsOf(steps)], flow, receipt)
        if (!receipt) break
        act += actsOf([step])
      }
      if (running.current === flow) running.current = null
      return receipt
    },
    [address, one],
  )

  const leave = useCallback(() => {
    if (running.current) running.current.isLeft = true
    running.current = null
    setSending({ state: 'left' })
  }, [])
  const reset = useCallback(() => {
    if (!running.current) setSending({ state: 'idle' })
  }, [])
  return { sending, send, reset, leave }
}

export function isBusy(sending: Sending): boolean {
  return 'at' in sending
}

const SLOW = 20_000 // milliseconds, after which a wallet that does not answer is spoken of

/** A flow's state. `approvals`: of an account for a contract, to take back one that no transaction has used. */
export function SendingNotice({ of: flow, approvals }: { of: Flow; approvals?: Approvals }) {
  const of = flow.sending
  const kind = of.state === 'confirmed' ? 'good' : of.state === 'failed' ? 'bad' : 'wait'
  return (
    <>
      <div role={of.state === 'failed' ? 'alert' : 'status'} data-news>
        {of.state !== 'idle' && (
          <div className={`notice ${kind}`} data-sending={of.state}>
            <span>
              {'at' in of && of.at[1] > 1 && say.sending.act(...of.at)}
              {of.state === 'failed'
                ? of.why
                : of.state === 'confirmed'
                  ? say.sending.confirmed(of.block, of.replaced)
                  : say.sending[of.state]}
            </span>
            {'hash' in of && <ShownHash of={of.hash} />}
            {(of.state === 'permitting' || of.state === 'signing') && <Unanswered leave={flow.leave} />}
          </div>
        )}
      </div>
      {approvals && !isBusy(of) && <StandingApproval {...approvals} send={flow.send} />}
    </>
  )
}

function Unanswered({ leave }: { leave: () => void }) {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SLOW)
    return () => clearTimeout(timer)
  }, [])
  return (
    <>
      {isSlow && <span>{say.sending.slow}</span>}
      <button type="button" onClick={leave}>
        {say.sending.leave}
      </button>
    </>
  )
}

export interface Approvals {
  account: Address
  contract: 'staking' | 'tasks'
}

/** The approval, in the smallest unit; undefined until it is known. */
function useApproval({ account, contract }: Approvals): bigint | undefined {
  const network = useNetwork()
  const args = [account, network[contract]] as const
  return useReadContract({ address: network.token, abi: tokenAbi, functionName: 'allowance', args }).data
}

/** The steps of a call that takes tokens: with an approval before it, unless that amount is approved already. */
export function useApproved(of: Approvals): (amount: bigint, call: Call) => Step[] {
  const stands = useApproval(of)
  const { approve } = useCalls()
  return (amount, call) => (amount === (stands ?? 0n) ? [call] : [approve(of.contract, amount), call])
}

function StandingApproval({ send, ...of }: Approvals & Pick<Flow, 'send'>) {
  const stands = useApproval(of)
  const { approve } = useCalls()
  if (!stands) return null
  return (
    <div className="notice wait">
      <span>{say.sending.stands[of.contract](formatTokens(stands))}</span>
      <button type="button" onClick={() => void send(approve(of.contract, 0n))}>
        {say.sending.takeBack}
      </button>
    </div>
  )
}
