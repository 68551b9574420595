/** An account's own nodes, as the contract has them now. It works without the API. */
import { getContract, zeroAddress, zeroHash, type Address, type PublicClient } from 'viem'
import type { Role } from '../api/client'
import type { Config } from '../api/config'
import { stakingAbi, tokenAbi } from '../generated/abi'
import { ROLES, numberOf } from '../lib/enums'
import type { Payee } from '../parts/withdrawal'
import { useChain } from './provider'

export interface OwnNode {
  role: Role
  /** The active stake of all delegators. */
  active: bigint
  free: bigint
  locked: bigint
  unbonding: bigint
  /** Worth of the owner's own shares that are not unbonding. */
  own: bigint
  /** With commission. */
  claimable: bigint
  commissionBps: number
  /** An announced higher commission, and the time from which it applies, in seconds since the epoch. */
  next: { bps: number; at: number } | null
  payee: Payee
}

export interface Own {
  balance: bigint
  /** Seconds. */
  unbondingPeriod: number
  hasVoterKey: boolean
  nodes: OwnNode[]
}

/** As the contract gives it, where zero is nobody. */
export function payeeOf(found: { current: Address; next: Address; nextAt: number }): Payee {
  const known = (one: Address) => (one === zeroAddress ? null : one)
  return { current: known(found.current), next: known(found.next), nextAt: found.nextAt }
}

async function read(client: PublicClient, network: Config, account: Address): Promise<Own> {
  const staking = getContract({ address: network.staking, abi: stakingAbi, client }).read
  const token = getContract({ address: network.token, abi: tokenAbi, client }).read
  const node = async (role: Role): Promise<OwnNode | null> => {
    const args = [account, numberOf(role)] as const
    const [pool, stake, [, own, claimable], paid] = await Promise.all([
      staking.poolOf(args),
      staking.stakeOf(args),
      staking.positionOf([account, ...args]),
      staking.withdrawalAddressOf(args),
    ])
    if (pool.vestedAt === 0) return null // not registered: `Pool.sol`
    const { active, free, locked, unbonding } = stake
    const { commissionBps, nextCommissionBps: bps, nextCommissionAt: at } = pool
    const next = at === 0 ? null : { bps, at }
    return { role, active, free, locked, unbonding, own, claimable, commissionBps, next, payee: payeeOf(paid) }
  }
  const [balance, unbondingPeriod, key, nodes] = await Promise.all([
    token.balanceOf([account]),
    staking.unbondingPeriod(),
    staking.voterKeyHash([account]),
    Promise.all(ROLES.map(node)),
  ])
  return {
    balance,
    unbondingPeriod,
    hasVoterKey: key !== zeroHash,
    nodes: nodes.filter((one) => one !== null),
  }
}

export function useOwn(account: Address) {
  return useChain('own', account, read)
}
