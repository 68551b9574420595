/** An account's stake, as the contract has it now. The API lists its nodes and claims; if it does not answer, the events
 * do.
 */
import { getContract, type Address, type PublicClient } from 'viem'
import { answer, api, ApiProblem, ApiUnreachable, type Role } from '../api/client'
import type { Config } from '../api/config'
import { stakingAbi, tokenAbi } from '../generated/abi'
import { same } from '../lib/accounts'
import { numberOf, ROLES } from '../lib/enums'
import { vestingOf } from '../lib/whatif'
import { useChain } from './provider'

export interface Holding {
  node: Address
  role: Role
  shares: bigint
  /** Worth of the shares, in the smallest unit. */
  worth: bigint
  claimable: bigint
  /** More rewards, which vest by the second up to `vestingEnd`, in seconds since the epoch. */
  vesting: bigint
  vestingEnd: number
  /** True if a withdrawal address gets it. */
  isPaidElsewhere: boolean
}

export interface Claim {
  /** Seconds since the epoch. */
  time: number
  amount: bigint
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
  /** Seconds. */
  unbondingPeriod: number
  /** True if the API did not answer, so that events were read. */
  fromEvents: boolean
}

const RANGE = 10_000n // blocks of a query for events
const PAGE = 200

type Backed = Pick<Holding, 'node' | 'role'>

/** All items of a list that the API gives page by page. */
async function allOf<Item>(
  ask: (page: { limit: number; cursor?: string }) => Promise<{ items: Item[]; next: string | null }>,
) {
  const found: Item[] = []
  let cursor: string | null = null
  do {
    const page: { items: Item[]; next: string | null } = await ask({ limit: PAGE, ...(cursor ? { cursor } : {}) })
    found.push(...page.items)
    cursor = page.next
  } while (cursor)
  return found
}

async function backedByApi(account: Address): Promise<Backed[]> {
  const found = await allOf((page) =>
    answer(api.GET('/v1/delegations', { params: { query: { delegator: account, ...page } } })),
  )
  return found.map((one) => ({ node: one.node as Address, role: one.role }))
}

async function claimsByApi(account: Address): Promise<Claim[]> {
  const found = await allOf((page) =>
    answer(
      api.GET('/v1/accounts/{account}/history', { params: { path: { account }, query: { kind: 'claimed', ...page } } }),
    ),
  )
  return found.map(({ time, amount }) => ({ time, amount: BigInt(amount ?? 0) }))
}

interface Blocks {
  fromBlock: bigint
  toBlock: bigint
}

/** Events of all blocks, in queries of a few blocks each. */
async function inAllBlocks<Event>(client: PublicClient, network: Config, ask: (blocks: Blocks) => Promise<Event[]>) {
  const found: Event[] = []
  const latest = await client.getBlockNumber()
  for (let first = network.firstBlock; first <= latest; first += RANGE) {
    const last = first + RANGE - 1n < latest ? first + RANGE - 1n : latest
    found.push(...(await ask({ fromBlock: first, toBlock: last })))
  }
  return found
}

async function backedByEvents(client: PublicClient, network: Config, account: Address): Promise<Backed[]> {
  const of = { address: network.staking, abi: stakingAbi, eventName: 'Delegated', strict: true } as const
  const args = { delegator: account }
  const found = new Map<string, Backed>()
  for (const event of await inAllBlocks(client, network, (blocks) =>
    client.getContractEvents({ ...of, args, ...blocks }),
  )) {
    const role = ROLES[event.args.role]
    if (role) found.set(`${event.args.node}${role}`, { node: event.args.node, role })
  }
  return [...found.values()]
}

async function claimsByEvents(client: PublicClient, network: Config, account: Address): Promise<Claim[]> {
  const of = { address: network.staking, abi: stakingAbi, eventName: 'Claimed', strict: true } as const
  const args = { delegator: account }
  const found = await inAllBlocks(client, network, (blocks) => client.getContractEvents({ ...of, args, ...blocks }))
  return await Promise.all(
    found.map(async (event) => {
      const { timestamp } = await client.getBlock({ blockNumber: event.blockNumber })
      return { time: Number(timestamp), amount: event.args.amount }
    }),
  )
}

/** Throws what `read` throws, except that the API does not answer or cannot: then `instead` is read. */
async function orInstead<T>(read: Promise<T>, instead: () => Promise<T>): Promise<T> {
  return await read.catch((error: unknown) => {
    if (error instanceof ApiUnreachable || (error instanceof ApiProblem && error.status >= 500)) return instead()
    throw error
  })
}

async function read(client: PublicClient, network: Config, account: Address): Promise<Holdings> {
  const staking = getContract({ address: network.staking, abi: stakingAbi, client }).read
  const token = getContract({ address: network.token, abi: tokenAbi, client }).read
  let fromEvents = false
  const backed = await orInstead(backedByApi(account), () => {
    fromEvents = true
    return backedByEvents(client, network, account)
  })
  const [balance, count, unbondingPeriod] = await Promise.all([
    token.balanceOf([account]),
    staking.requestCount([account]),
    staking.unbondingPeriod(),
  ])
  const holdings = await Promise.all(
    backed.map(async ({ node, role }): Promise<Holding> => {
      const [[shares, worth, claimable], pool] = await Promise.all([
        staking.positionOf([account, node, numberOf(role)]),
        staking.poolOf([node, numberOf(role)]),
      ])
      const vesting = vestingOf(pool, shares, same(node, account), Date.now() / 1000)
      const isPaidElsewhere = pool.hasWithdrawalAddress && same(node, account)
      return { node, role, shares, worth, claimable, vesting, vestingEnd: pool.vestingEnd, isPaidElsewhere }
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
    holdings: holdings.filter((one) => one.shares > 0n || one.claimable > 0n || one.vesting > 0n),
    unbondings: requests.filter((one) => one !== null),
    unbondingPeriod,
    fromEvents,
  }
}

export function useHoldings(account: Address) {
  return useChain('holdings', account, read)
}

export function useClaims(account: Address) {
  return useChain('claims', account, (client, network) =>
    orInstead(claimsByApi(account), () => claimsByEvents(client, network, account)),
  )
}
