/** The browser's wallets (EIP-1193, announced by EIP-6963), the network, and reads through the chain's node. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { createContext, useCallback, useContext, useEffect, useState, type ReactNode } from 'react'
import {
  createConfig,
  custom,
  http,
  injected,
  useBytecode,
  useConfig,
  usePublicClient,
  useReadContract,
  WagmiContext,
  type Config as WagmiConfig,
} from 'wagmi'
import { getConnection, reconnect } from 'wagmi/actions'
import { defineChain, type Address, type Chain, type PublicClient } from 'viem'
import { config as configQuery, type Config } from '../api/config'
import { tokenAbi } from '../generated/abi'
import { Fault, Loading } from '../parts/basics'
import { loneWallet } from '../parts/wallets'
import * as say from '../strings'
import { refusal } from './errors'

const NetworkContext = createContext<Config | null>(null)

/** The chain and its contracts. Only inside `WithWallet`. */
export function useNetwork(): Config {
  const network = useContext(NetworkContext)
  if (!network) throw new Error('useNetwork is used outside of WithWallet')
  return network
}

export function chainOf(network: Config): Chain {
  const urls = network.chainUrl === null ? [] : [network.chainUrl]
  return defineChain({
    id: network.chainId,
    name: say.wallet.chain(network.chainId),
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: urls } },
  })
}

let made: { of: string; config: WagmiConfig } | undefined // one for all pages: it has the connected account

function wagmiOf(network: Config): WagmiConfig {
  const of = JSON.stringify([network.chainId, network.chainUrl])
  if (made?.of === of) return made.config
  const chain = chainOf(network)
  const transport = network.chainUrl === null ? custom(walletNode) : http(network.chainUrl, { batch: true })
  const config = createConfig({
    chains: [chain],
    connectors: [injected()],
    multiInjectedProviderDiscovery: true,
    transports: { [network.chainId]: transport },
    pollingInterval: 1_000,
  })
  made = { of, config }
  return config
}

/** The wallet's own node, for a network that names none. */
const walletNode = {
  request: async (call: { method: string; params?: unknown }): Promise<unknown> => {
    const [wallet] = loneWallet()
    if (!wallet) throw new Error(say.wallet.noNode)
    return await wallet.request(call)
  },
}

export function WithWallet({ children }: { children: ReactNode }) {
  const { data: network, error, refetch } = useQuery(configQuery())
  if (!network) return error ? <Fault error={error} retry={() => void refetch()} /> : <Loading />
  return <Connected network={network}>{children}</Connected>
}

function Connected({ network, children }: { network: Config; children: ReactNode }) {
  const [config] = useState(() => wagmiOf(network))
  // Not wagmi's provider, which connects anew whenever the page is painted: the wallet's answer to that is older than a
  // switch of its account meanwhile, and would undo it.
  useEffect(() => {
    if (getConnection(config).status !== 'connected') void reconnect(config)
  }, [config])
  return (
    <WagmiContext value={config}>
      <NetworkContext value={network}>{children}</NetworkContext>
    </WagmiContext>
  )
}

/** The account's tokens, in the smallest unit; undefined until they are known. */
export function useBalance(account: Address): bigint | undefined {
  const { token } = useNetwork()
  return useReadContract({ address: token, abi: tokenAbi, functionName: 'balanceOf', args: [account] }).data
}

/** True if the account is a contract, as a multi-signature wallet is: it has no key to sign an approval with (ERC-2612).
 * An account with a delegation (EIP-7702) has its key. Undefined until it is known.
 */
export function useIsContract(account: Address): boolean | undefined {
  const select = (code: string | null | undefined) => !!code && !code.startsWith('0xef0100')
  return useBytecode({ address: account, query: { select } }).data
}

/** Words for a refusal. Wallets have no error of their own for a signature that is for another chain than their present one. */
export function useRefusal(): (error: unknown) => string {
  const config = useConfig()
  const network = useNetwork()
  return useCallback(
    (error) => {
      const { chainId = network.chainId } = getConnection(config)
      return chainId === network.chainId ? refusal(error) : say.refused.wrongChain
    },
    [config, network.chainId],
  )
}

/** Reads an account's state from the chain every 12 s, because rewards vest by the second. After another account is
 * selected, it is the first one's for a moment (`isPlaceholderData`), so that forms can stay in the page.
 */
export function useChain<T>(
  key: string,
  account: Address,
  read: (client: PublicClient, network: Config, account: Address) => Promise<T>,
) {
  const client = usePublicClient()
  const network = useNetwork()
  return useQuery({
    queryKey: [key, account, network.chainId, network.staking],
    enabled: client !== undefined,
    refetchInterval: 12_000,
    placeholderData: keepPreviousData,
    queryFn: () => {
      if (!client) throw new Error(say.wallet.noNode)
      return read(client, network, account)
    },
  })
}
