/** Wallets that the browser has (EIP-1193, announced by EIP-6963). Loaded only where one is needed. */
import { useQuery } from '@tanstack/react-query'
import { createContext, use, useState, type ReactNode } from 'react'
import { createConfig, custom, http, injected, WagmiProvider, type Config as WagmiConfig } from 'wagmi'
import { defineChain } from 'viem'
import { config as configQuery, type Config } from '../api/config'
import { Fault, Loading } from '../parts/basics'
import { say } from '../strings'

const Place = createContext<Config | null>(null)

/** Where contracts are. Only inside `WithWallet`. */
export function usePlace(): Config {
  const place = use(Place)
  if (!place) throw new Error('usePlace stands outside of WithWallet')
  return place
}

let made: { of: string; config: WagmiConfig } | undefined // one for all pages: it knows who is connected

function wagmiOf(place: Config): WagmiConfig {
  const of = JSON.stringify([place.chainId, place.chainUrl])
  if (made?.of === of) return made.config
  const urls = place.chainUrl === null ? [] : [place.chainUrl]
  const chain = defineChain({
    id: place.chainId,
    name: say.wallet.chain(place.chainId),
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: urls } },
  })
  const transport = place.chainUrl === null ? custom(walletNode()) : http(place.chainUrl, { batch: true })
  const config = createConfig({
    chains: [chain],
    connectors: [injected()],
    multiInjectedProviderDiscovery: true,
    transports: { [place.chainId]: transport },
    pollingInterval: 1_000,
  })
  made = { of, config }
  return config
}

/** The node that the wallet asks, where the place names none. */
function walletNode(): { request: (asked: { method: string; params?: unknown }) => Promise<unknown> } {
  return {
    request: async (asked) => {
      const provider: unknown = Reflect.get(window, 'ethereum')
      const request: unknown =
        typeof provider === 'object' && provider ? Reflect.get(provider, 'request') : undefined
      if (typeof request !== 'function') throw new Error(say.wallet.noNode)
      return await (Reflect.apply(request, provider, [asked]) as Promise<unknown>)
    },
  }
}

export function WithWallet({ children }: { children: ReactNode }) {
  const { data: place, error, refetch } = useQuery(configQuery())
  if (error) return <Fault error={error} retry={() => void refetch()} />
  if (!place) return <Loading />
  return <Connected place={place}>{children}</Connected>
}

function Connected({ place, children }: { place: Config; children: ReactNode }) {
  const [config] = useState(() => wagmiOf(place))
  return (
    <WagmiProvider config={config}>
      <Place value={place}>{children}</Place>
    </WagmiProvider>
  )
}
