/** Whether the browser has a wallet, found out without a wallet's code (EIP-1193, EIP-6963). */
import { Suspense, useEffect, useState, type ReactNode } from 'react'
import { say } from '../strings'
import { Loading } from './basics'

const words = say.wallet

/** That code is more than all others together: it is loaded where there is a wallet, and waits for one that comes. */
export function WithWalletCode({ children }: { children: ReactNode }) {
  const [isAnnounced, setAnnounced] = useState(false)
  useEffect(() => {
    const hear = () => setAnnounced(true)
    window.addEventListener('eip6963:announceProvider', hear)
    window.dispatchEvent(new Event('eip6963:requestProvider'))
    return () => window.removeEventListener('eip6963:announceProvider', hear)
  }, [])
  if (isAnnounced || hasLoneWallet()) return <Suspense fallback={<Loading isTall />}>{children}</Suspense>
  return (
    <div className="card">
      <h2>{words.connect}</h2>
      <p className="soft">{words.connectMeans}</p>
      <p>{words.noWallet}</p>
    </div>
  )
}

/** One that does not announce itself. */
export function hasLoneWallet(): boolean {
  return Reflect.has(window, 'ethereum')
}
