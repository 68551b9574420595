/** Buys predictions: an offer, the wallet, and the desk of one server. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Address } from 'viem'
import type { Schemas } from '../api/client'
import { config, type Config } from '../api/config'
import { shortened } from '../lib/accounts'
import { formatExactly } from '../lib/amounts'
import { Loading, Notice } from '../parts/basics'
import { Choice } from '../parts/choice'
import { Command } from '../parts/command'
import * as say from '../strings'
import { Connected } from '../wallet/connect'
import { Desk } from './desk'
import { isAllowed, serviceOf } from './server'

const words = say.market

/** `number`: of a task or an ensemble. */
export default function Buy({ number, offers }: { number: number; offers: readonly Schemas['Offer'][] }) {
  const { data: network } = useQuery(config())
  const [chosen, setChosen] = useState(offers[0]?.server ?? '')
  const offer = offers.find(({ server }) => server === chosen) ?? offers[0]
  if (!network || !offer) return <Loading />
  return (
    <div className="stack">
      <Choice
        name={words.choose}
        value={offer.server}
        of={offers.map((one) => [one.server, shownOffer(one)] as const)}
        change={setChosen}
      />
      <At key={`${offer.server} ${offer.url}`} network={network} task={number} offer={offer} />
    </div>
  )
}

function shownOffer({ server, price, url }: Schemas['Offer']): string {
  const host = URL.canParse(url) ? new URL(url).host : words.noAddress
  return `${formatExactly(BigInt(price))} – ${host} (${shortened(server)})`
}

function At({ network, task, offer }: { network: Config; task: number; offer: Schemas['Offer'] }) {
  const service = serviceOf(offer.url)
  if (!service) return <Notice kind="wait">{words.notSafe}</Notice>
  if (!isAllowed(service, network.predictionServers))
    return (
      <>
        <Notice kind="wait">{words.notAllowedHere(service.host)}</Notice>
        <Command of={`consilium buy ${service.href} rows.csv --output predictions.csv --receipts receipts`} />
      </>
    )
  return (
    <Connected>
      {(account) => (
        <Desk key={account} account={account} task={task} server={offer.server as Address} url={service.href} />
      )}
    </Connected>
  )
}
