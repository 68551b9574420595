import { Fragment, type ReactNode } from 'react'
import type { Address } from 'viem'
import { useConnect, useConnection, useConnectors, useDisconnect, useSwitchChain } from 'wagmi'
import { Account, Notice } from '../parts/basics'
import { ConnectCard, loneWallet } from '../parts/wallets'
import { say } from '../strings'
import { refusal } from './errors'
import { usePlace, WithWallet } from './provider'

const words = say.wallet

/** Shows its children once a wallet is connected and on the right chain; anew for another account. */
export function Connected({ children }: { children: (account: Address) => ReactNode }) {
  return (
    <WithWallet>
      <Connection>{children}</Connection>
    </WithWallet>
  )
}

function Connection({ children }: { children: (account: Address) => ReactNode }) {
  const { address, chainId } = useConnection()
  const place = usePlace()
  if (!address) return <Choose />
  return (
    <>
      <ConnectedAs account={address} />
      {chainId === place.chainId ? <Fragment key={address}>{children(address)}</Fragment> : <WrongChain />}
    </>
  )
}

export function Choose() {
  const connectors = useConnectors()
  const { mutate: connect, isPending, error } = useConnect()
  // The wallet that does not announce itself is shown only if no other is there.
  const announced = connectors.filter((one) => one.id !== 'injected')
  const shown = announced.length > 0 ? announced : connectors.filter(() => loneWallet().length > 0)
  return (
    <ConnectCard>
      {shown.length === 0 && <p>{words.noWallet}</p>}
      <div className="tools">
        {shown.map((connector) => (
          <button
            key={connector.uid}
            type="button"
            className="main"
            disabled={isPending}
            onClick={() => connect({ connector })}
          >
            {connector.icon && <img src={connector.icon} alt="" width="20" height="20" />}
            {connector.id === 'injected' ? words.injected : connector.name}
          </button>
        ))}
      </div>
      {error && <Notice kind="bad">{refusal(error)}</Notice>}
    </ConnectCard>
  )
}

export function ConnectedAs({ account }: { account: Address }) {
  const { mutate: disconnect } = useDisconnect()
  return (
    <p className="tools small">
      <span>
        {words.connected} <Account of={account} />
      </span>
      <button type="button" className="plain" onClick={() => disconnect()}>
        {words.disconnect}
      </button>
    </p>
  )
}

function WrongChain() {
  const place = usePlace()
  const { mutate: switchChain, isPending, error } = useSwitchChain()
  return (
    <div className="notice wait" role="alert">
      <span>{words.wrongChain(place.chainId)}</span>
      <button type="button" disabled={isPending} onClick={() => switchChain({ chainId: place.chainId })}>
        {words.switchChain}
      </button>
      {error && <span className="bad">{refusal(error)}</span>}
    </div>
  )
}
