import { useState, type ReactNode } from 'react'
import type { Address } from 'viem'
import { useConnect, useConnection, useConnectors, useDisconnect, useSwitchChain } from 'wagmi'
import { same } from '../lib/accounts'
import { Account, Notice } from '../parts/basics'
import { Shown } from '../parts/dialog'
import { ConnectCard, NoWallet, useWallets } from '../parts/wallets'
import * as say from '../strings'
import { refusal } from './errors'
import { useNetwork, WithWallet } from './provider'

const words = say.wallet

/** Shows its children once a wallet is connected and on the right chain. They stay as they are if it switches or is locked
 * later.
 */
export function Connected({ children }: { children: (account: Address) => ReactNode }) {
  return (
    <WithWallet>
      <Connection>{children}</Connection>
    </WithWallet>
  )
}

function Connection({ children }: { children: (account: Address) => ReactNode }) {
  const { address, chainId } = useConnection()
  const network = useNetwork()
  const isRight = chainId === network.chainId
  const [wasRight, setWasRight] = useState(isRight)
  const [last, setLast] = useState(address)
  if (isRight && !wasRight) setWasRight(true)
  if (address && address !== last) setLast(address)
  if (!last) return <Choose />
  return (
    <>
      {address ? <ConnectedAs account={address} /> : <Choose />}
      <Switched account={last} />
      {address && !isRight && <WrongChain />}
      {wasRight && <Shown when={address !== undefined && isRight}>{children(last)}</Shown>}
    </>
  )
}

/** Says that the wallet has another account selected than when the page was opened, because forms keep their content. */
function Switched({ account }: { account: Address }) {
  const [known, setKnown] = useState(account)
  if (same(known, account)) return null
  return (
    <div className="notice wait" role="alert">
      <span>
        {words.switched} <Account of={account} />
      </span>
      <button type="button" onClick={() => setKnown(account)}>
        {words.understood}
      </button>
    </div>
  )
}

export function Choose() {
  const connectors = useConnectors()
  const { mutate: connect, isPending, error } = useConnect()
  // The wallet that does not announce itself is shown only if no other is there.
  const announced = connectors.filter((one) => one.id !== 'injected')
  const hasLone = useWallets().length > 0
  const shown = announced.length > 0 ? announced : connectors.filter(() => hasLone)
  return (
    <ConnectCard>
      {shown.length === 0 && <NoWallet />}
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
  const { connector } = useConnection()
  return (
    <p className="tools small">
      <span>
        {words.connected} <Account of={account} />
        {connector && ` ${words.by(connector.id === 'injected' ? words.injected : connector.name)}`}
      </span>
      <button type="button" className="plain" onClick={() => disconnect()}>
        {words.disconnect}
      </button>
    </p>
  )
}

function WrongChain() {
  const network = useNetwork()
  const { mutate: switchChain, isPending, error } = useSwitchChain()
  return (
    <div className="notice wait" role="alert">
      <span>{words.wrongChain(network.chainId)}</span>
      <button type="button" disabled={isPending} onClick={() => switchChain({ chainId: network.chainId })}>
        {words.switchChain}
      </button>
      {error && <span className="bad">{refusal(error)}</span>}
    </div>
  )
}
