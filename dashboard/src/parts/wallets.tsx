/** The browser's wallets, found without any wallet code (EIP-1193, EIP-6963). */
import { useEffect, useState, useSyncExternalStore, type ReactNode } from 'react'
import { Link, useLocation } from 'react-router'
import type { EIP1193RequestFn } from 'viem'
import { fieldOf } from '../lib/fields'
import { walletLinks } from '../lib/walletlinks'
import * as say from '../strings'

const words = say.wallet

export interface Wallet {
  name: string
  request: EIP1193RequestFn
}

function walletOf(provider: unknown, name: unknown): Wallet[] {
  if (typeof fieldOf(provider, 'request') !== 'function' || typeof name !== 'string') return []
  const wallet = provider as Pick<Wallet, 'request'>
  return [{ name, request: (call) => wallet.request(call) }]
}

/** The wallet that does not announce itself, if the browser has one. */
export function loneWallet(): Wallet[] {
  return walletOf(fieldOf(window, 'ethereum'), say.verify.wallet)
}

/** The wallets that announce themselves, or else the one that does not. */
export function useWallets(): Wallet[] {
  const [announced, setAnnounced] = useState<Wallet[]>([])
  useEffect(() => {
    const hear = (event: Event) => {
      const detail = fieldOf(event, 'detail')
      const found = walletOf(fieldOf(detail, 'provider'), fieldOf(fieldOf(detail, 'info'), 'name'))
      setAnnounced((known) => [...known.filter(({ name }) => name !== found[0]?.name), ...found])
    }
    const look = () => setAnnounced((known) => [...known]) // one that does not announce itself is there now
    window.addEventListener('eip6963:announceProvider', hear)
    window.addEventListener('ethereum#initialized', look)
    window.addEventListener('focus', look)
    window.dispatchEvent(new Event('eip6963:requestProvider'))
    return () => {
      window.removeEventListener('eip6963:announceProvider', hear)
      window.removeEventListener('ethereum#initialized', look)
      window.removeEventListener('focus', look)
    }
  }, [])
  return announced.length > 0 ? announced : loneWallet()
}

export function ConnectCard({ children }: { children: ReactNode }) {
  const isSettingUp = useLocation().pathname === '/wallet'
  return (
    <div className="card">
      <h2>{words.connect}</h2>
      <p className="soft">{words.connectMeans}</p>
      {children}
      {!isSettingUp && (
        <p className="small">
          <Link to="/wallet">{say.setup.link}</Link>
        </p>
      )}
    </div>
  )
}

const PHONE = '(pointer: coarse) and (max-width: 820px)'

/** Says what to do without a wallet. On a phone, links open this page in a wallet's own browser. */
export function NoWallet() {
  useLocation() // the links are to the present page
  const isPhone = useSyncExternalStore(watchPhone, () => matchMedia(PHONE).matches)
  return (
    <>
      <p>{words.noWallet}</p>
      {isPhone && (
        <section className="stack" aria-label={words.onPhone}>
          <p className="soft">{words.onPhone}</p>
          <p className="tools">
            {walletLinks(window.location.href).map(({ wallet, href }) => (
              <a key={wallet} href={href} rel="noreferrer">
                {words.openIn(wallet)}
              </a>
            ))}
          </p>
        </section>
      )}
    </>
  )
}

function watchPhone(changed: () => void) {
  const query = matchMedia(PHONE)
  query.addEventListener('change', changed)
  return () => query.removeEventListener('change', changed)
}
