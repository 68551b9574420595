/** Wallets' own nodes (EIP-1193), announced by EIP-6963, or alone as `window.ethereum`. */
import { useEffect, useState } from 'react'
import type { EIP1193RequestFn } from 'viem'
import { say } from '../strings'
import type { Node } from './chain'

interface Announced {
  info: { name: string }
  provider: { request: EIP1193RequestFn }
}

function isProvider(found: unknown): found is Announced['provider'] {
  return typeof found === 'object' && found !== null && typeof Reflect.get(found, 'request') === 'function'
}

function isAnnounced(found: unknown): found is Announced {
  if (typeof found !== 'object' || found === null || !isProvider(Reflect.get(found, 'provider'))) return false
  const info: unknown = Reflect.get(found, 'info')
  return typeof info === 'object' && info !== null && typeof Reflect.get(info, 'name') === 'string'
}

function nodeOf(name: string, provider: Announced['provider']): Node {
  return { name: say.verify.nodeOfWallet(name), request: (asked) => provider.request(asked) }
}

export function useWalletNodes(): Node[] {
  const [announced, setAnnounced] = useState<Node[]>([])
  useEffect(() => {
    const hear = (event: Event) => {
      const said: unknown = Reflect.get(event, 'detail')
      if (!isAnnounced(said)) return
      const node = nodeOf(said.info.name, said.provider)
      setAnnounced((known) => [...known.filter((one) => one.name !== node.name), node])
    }
    window.addEventListener('eip6963:announceProvider', hear)
    window.dispatchEvent(new Event('eip6963:requestProvider'))
    return () => window.removeEventListener('eip6963:announceProvider', hear)
  }, [])
  const lone: unknown = Reflect.get(window, 'ethereum')
  if (announced.length > 0 || !isProvider(lone)) return announced
  return [nodeOf(say.verify.wallet, lone)]
}
