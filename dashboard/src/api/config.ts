/** The chain and contracts of this dashboard: `config.json` beside the page, from the server or written by hand. */
import { queryOptions } from '@tanstack/react-query'
import type { Address } from 'viem'
import { fieldOf } from '../lib/fields'
import { BASE, fetchInTime } from './client'

export interface Config {
  chainId: number
  /** A chain node for this dashboard; null if only a wallet has one. */
  chainUrl: string | null
  firstBlock: bigint
  /** True if the chain takes transactions with blobs. */
  blobs: boolean
  /** True if `example.toml` beside the page is a task file to begin with. */
  hasExample: boolean
  tasks: Address
  staking: Address
  token: Address
  modelShares: Address
  /** Origins of servers of predictions that the page may connect to, or "https:" for all; null if the file has none. */
  predictionServers: readonly string[] | null
}

export class ConfigInvalid extends Error {
  constructor(field: string) {
    super(`config.json has no valid ${field}`)
    this.name = 'ConfigInvalid'
  }
}

/** Throws ConfigInvalid. */
export async function parseConfig(read: unknown): Promise<Config> {
  const { checksummed } = await import('../lib/checksum') // with viem's hash, which no page needs at once
  const address = (name: string) => {
    const found = checksummed(fieldOf(fieldOf(read, 'contracts'), name))
    if (found === null) throw new ConfigInvalid(`contracts.${name}`)
    return found
  }
  const whole = (name: string) => {
    const value = fieldOf(read, name)
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw new ConfigInvalid(name)
    return value
  }
  const chainUrl = fieldOf(read, 'chain_url') ?? null
  if (chainUrl !== null && !(typeof chainUrl === 'string' && /^https?:\/\//.test(chainUrl)))
    throw new ConfigInvalid('chain_url')
  const servers = fieldOf(read, 'prediction_servers') ?? null
  const isList = Array.isArray(servers) && servers.every((one) => typeof one === 'string')
  if (servers !== null && !isList) throw new ConfigInvalid('prediction_servers')
  return {
    chainId: whole('chain_id'),
    chainUrl,
    firstBlock: BigInt(whole('first_block')),
    blobs: fieldOf(read, 'blobs') !== false,
    hasExample: fieldOf(read, 'example') === true,
    tasks: address('tasks'),
    staking: address('staking'),
    token: address('token'),
    modelShares: address('model_shares'),
    predictionServers: isList ? servers : null,
  }
}

export const config = () =>
  queryOptions({
    queryKey: ['config'],
    staleTime: Infinity,
    queryFn: async ({ signal }) => {
      const response = await fetchInTime(new Request(`${BASE}/config.json`, { signal }))
      if (!response.ok) throw new ConfigInvalid('answer')
      return await parseConfig(await response.json())
    },
  })

export const exampleTask = () =>
  queryOptions({
    queryKey: ['example'],
    staleTime: Infinity,
    queryFn: async ({ signal }) => {
      const response = await fetchInTime(new Request(`${BASE}/example.toml`, { signal }))
      if (!response.ok) throw new ConfigInvalid('example')
      return await response.text()
    },
  })
