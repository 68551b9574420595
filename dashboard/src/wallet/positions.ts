/** An account's stake, as the contract has it now. The API lists its nodes; if it does not answer, the events do. */
import { getContract, type Address, type PublicClient } from 'viem'
import { answer, api, ApiUnreachable, type Role, type Schemas } from '../api/client'
import type { Config } from '../api/config'
import { stakingAbi, tokenAbi } from '../generated/abi'
import { numberOf, ROLES } from '../lib/enums'
import { useChain } from './provider'

export interface Holding {
  node: Address
  role: Role
  shares: bigint
  /** Worth of the shares, in the smallest unit. */
  worth: bigint
  claimable: bigint
}

export interface Unbonding {
  request: bigint
  node: Address
  role: Role
  worth: bigint
  /** Seconds since the epoch. */
  maturesAt: number
}

export interface Holdings {
  balance: bigint
  holdings: Holding[]
  unbondings: Unbonding[]
  /** True if the API did not answer, so that events were read. */
  fromEvents: boolean
}

const RANGE = 10_000n // blocks of a query for events
const PAGE = 200

type Backed = Pick<Holding, 'node' | 'role'>

async function backedByApi(account: Address): Promise<Backed[]> {
  const found: Backed[] = []
  let cursor: string | null = null
  do {
    const query = { delegator: account, limit: PAGE, ...(cursor ? { cursor } : {}) }
    const page: Schemas['Page_Delegation_'] = await answer(api.GET('/v1/delegations', { params: { query } }))
    found.push(...page.items.map((one) => ({ node: one.node as Address, role: one.role })))
    cursor = page.next
  } while (cursor)
  return found
}

async function backedByEvents(client: PublicClient, place: Config, account: Address): Promise<Backed[]> {
  const found = new Map<string, Backed>()
  const latest = await client.getBlockNumber()
  for (let first = place.firstBlock; first <= latest; first += RANGE) {
    const last = first + RANGE - 1n < latest ? first + RANGE - 1n : latest
    const events = await client.getContractEvents({
      address: place.staking,
      abi: stakingAbi,
      eventName: 'Delegated',
      args: { delegator: account },
      fromBlock: first,
      toBlock: last,
      strict: true,
    })
    for (const { args } of events) {
      const role = ROLES[args.role]
      if (role) found.set(`${args.node}${role}`, { node: args.node, role })
    }
  }
  return [...found.values()]
}

async function read(client: PublicClient, place: Config, account: Address): Promise<Holdings> {
  const staking = getContract({ address: place.staking, abi: stakingAbi, client }).read
  const token = getContract({ address: place.token, abi: tokenAbi, client }).read
  let fromEvents = false
  const backed = await backedByApi(account).catch((error: unknown) => {
    if (!(error instanceof ApiUnreachable)) throw error
    fromEvents = true
    return backedByEvents(client, place, account)
  })
  const [balance, count] = await Promise.all([token.balanceOf([account]), staking.requestCount([account])])
  const holdings = await Promise.all(
    backed.map(async ({ node, role }): Promise<Holding> => {
      const [shares, worth, claimable] = await staking.positionOf([account, node, numberOf(role)])
      return { node, role, shares, worth, claimable }
    }),
  )
  const requests = await Promise.all(
    Array.from({ length: Number(count) }, async (_, index): Promise<Unbonding | null> => {
      const request = BigInt(index)
      const [about, worth] = await staking.requestOf([account, request])
      const role = ROLES[about.role]
      if (about.shares === 0n || !role) return null // withdrawn, or delegated again
      return { request, node: about.node, role, worth, maturesAt: about.maturesAt }
    }),
  )
  return {
    balance,
    holdings: holdings.filter((one) => one.shares > 0n || one.claimable > 0n),
    unbondings: requests.filter((one) => one !== null),
    fromEvents,
  }
}

export function useHoldings(account: Address) {
  return useChain('holdings', account, read)
}
