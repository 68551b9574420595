/** A buyer's account with one server: on the chain, and in the server's books. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { encodeAbiParameters, keccak256, toHex, type Address, type Hex } from 'viem'
import { useConfig } from 'wagmi'
import { getPublicClient, readContract, signTypedData } from 'wagmi/actions'
import { modelSharesAbi } from '../generated/abi'
import { same } from '../lib/accounts'
import { ofPayment, signerOf, voucherMessage, type Bought, type Finding, type Voucher } from '../lib/selling'
import * as say from '../strings'
import { useNetwork } from '../wallet/provider'
import { buy, describe, lastVoucher, sendDeposit, ServerRefuses, type Described } from './server'

const VOUCHER_SECONDS = 7n * 86_400n // that a voucher is good, at least
const SPARE_SECONDS = 600n // between this clock and the server's
const DEPOSIT_SECONDS = 3_600n

export interface Place {
  task: number
  server: Address
  url: string
}

/** Amounts in the smallest unit. `sold`: all that is owed since the first deposit. `left`: of the deposit, to spend. */
export interface Account {
  of: Described
  sold: bigint
  deposited: bigint
  left: bigint
  isClosing: boolean
}

/** The server's description and the account, both read again by `refetch`. */
export function useAccount(buyer: Address, { task, server, url }: Place) {
  const network = useNetwork()
  const wagmi = useConfig()
  return useQuery({
    queryKey: ['market', task, server, url, buyer],
    retry: false,
    queryFn: async (): Promise<Account> => {
      const of = await describe(url, { chainId: network.chainId, modelShares: network.modelShares, task, server })
      const [last, channel] = await Promise.all([
        lastVoucher(url, buyer),
        readContract(wagmi, {
          address: network.modelShares,
          abi: modelSharesAbi,
          functionName: 'channel',
          args: [BigInt(task), server, buyer],
        }),
      ])
      const { deposited, redeemed, closesAt } = channel
      if (last.sold > redeemed) {
        const voucher = { buyer, server, taskId: BigInt(task), amount: last.sold, expiresAt: last.expiresAt }
        const signer = last.signature && (await signerOf(network, voucher, last.signature))
        if (!signer || !same(signer, buyer)) throw new ServerRefuses(say.market.lies)
      }
      const sold = last.sold > redeemed ? last.sold : redeemed
      return { of, sold, deposited, left: deposited - sold, isClosing: closesAt !== 0n }
    },
  })
}

/** Time of the latest block, by which contracts and servers count. */
function useClock() {
  const wagmi = useConfig()
  return async (): Promise<bigint> => {
    const client = getPublicClient(wagmi)
    if (!client) throw new Error(say.wallet.noNode)
    const { timestamp } = await client.getBlock()
    const now = BigInt(Math.floor(Date.now() / 1000))
    return timestamp > now ? timestamp : now
  }
}

const RECEIVE = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
] as const

/** Signs a deposit, which the server sends (ERC-3009). Its nonce binds it to this channel. */
export function useSignedDeposit(buyer: Address, { task, server, url }: Place) {
  const network = useNetwork()
  const wagmi = useConfig()
  const clock = useClock()
  return async (value: bigint): Promise<void> => {
    const salt = toHex(crypto.getRandomValues(new Uint8Array(32)))
    const parts = [{ type: 'uint256' }, { type: 'address' }, { type: 'bytes32' }] as const
    const nonce = keccak256(encodeAbiParameters(parts, [BigInt(task), server, salt]))
    const validBefore = (await clock()) + DEPOSIT_SECONDS
    const message = { from: buyer, to: network.modelShares, value, validAfter: 0n, validBefore, nonce }
    const signature = await signTypedData(wagmi, {
      account: buyer,
      domain: { name: 'Consilium', version: '1', chainId: network.chainId, verifyingContract: network.token },
      types: { ReceiveWithAuthorization: RECEIVE },
      primaryType: 'ReceiveWithAuthorization',
      message,
    })
    await sendDeposit(url, message, salt, signature)
  }
}

export interface Purchase extends Bought {
  payment: Finding
}

interface Sent {
  request: string
  voucher: Voucher
  signature: Hex
}

/** `purchase` pays for a request by a voucher and gets its answer; `onSigned`: once the wallet has signed. Without an
 * answer the same request goes out with the same voucher the next time (`isSent`), so nothing is paid twice.
 */
export function usePurchase(buyer: Address, { task, server, url }: Place) {
  const network = useNetwork()
  const wagmi = useConfig()
  const clock = useClock()
  const [sent, setSent] = useState<Sent | null>(null)

  async function signed(request: string, account: Account, price: bigint): Promise<Sent> {
    const { expiresAfter } = account.of
    const seconds = expiresAfter > VOUCHER_SECONDS ? expiresAfter : VOUCHER_SECONDS
    const expiresAt = (await clock()) + seconds + SPARE_SECONDS
    const voucher = { buyer, server, taskId: BigInt(task), amount: account.sold + price, expiresAt }
    const signature = await signTypedData(wagmi, { account: buyer, ...voucherMessage(network, voucher) })
    return { request, voucher, signature }
  }

  async function purchase(request: string, account: Account, price: bigint, onSigned: () => void): Promise<Purchase> {
    const present = sent && isOf(sent, request, account, price) ? sent : await signed(request, account, price)
    onSigned()
    setSent(present)
    const bought = await buy(url, network.chainId, request, present.voucher, present.signature)
    setSent(null)
    return { ...bought, payment: ofPayment(network, bought, present.voucher, price) }
  }
  const isSent = (request: string, account: Account, price: bigint) =>
    sent !== null && isOf(sent, request, account, price)
  return { purchase, isSent }
}

/** True if a voucher pays for this request, and the server has taken it or can take it now. */
function isOf({ request, voucher: { amount } }: Sent, wanted: string, { sold }: Account, price: bigint): boolean {
  return request === wanted && (amount === sold || amount === sold + price)
}
