/** What is offered of a model or an ensemble, and the ways to buy and to check, which are loaded on demand. */
import { lazy } from 'react'
import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import { orderOf } from '../lib/ensembles'
import { Price } from '../pages/market'
import { Account, Ago, Card, OnDemand } from '../parts/basics'
import { TableCard } from '../parts/table'
import * as say from '../strings'

const Buy = lazy(() => import('./buy'))
const Check = lazy(() => import('./check'))
const words = say.market

export function EnsembleLink({ number }: { number: number }) {
  return <Link to={`/ensembles/${number}`}>{words.ensemble(orderOf(number))}</Link>
}

export function Offers({ of }: { of: Pick<Schemas['SoldModel'], 'offers' | 'offers_in_all'> }) {
  return (
    <TableCard
      title={words.offers}
      means={words.offersMean}
      rows={of.offers}
      keyOf={({ server }) => server}
      empty={words.noOffers}
      columns={[
        { text: words.server, of: ({ server }) => <Account of={server} /> },
        { number: words.price, of: ({ price }) => <Price of={price} /> },
        { text: words.service, of: ({ url }) => <Service url={url} /> },
        { text: say.columns.since, of: ({ since }) => <Ago of={since} /> },
      ]}
    >
      {of.offers_in_all > of.offers.length && (
        <p className="soft small">{words.more(of.offers.length, of.offers_in_all)}</p>
      )}
    </TableCard>
  )
}

/** `number`: of a task or an ensemble. Nothing without an offer. */
export function ToBuy({ number, offers }: { number: number; offers: readonly Schemas['Offer'][] }) {
  if (offers.length === 0) return null
  return (
    <Card title={words.buy} means={words.buyMeans}>
      <OnDemand open={words.buyOpen} isMain>
        <Buy number={number} offers={offers} />
      </OnDemand>
    </Card>
  )
}

export function ToCheck() {
  return (
    <Card title={words.check} means={words.checkMeans}>
      <OnDemand open={words.checkOpen}>
        <Check />
      </OnDemand>
    </Card>
  )
}

/** A stranger's address, whose host is in plain sight. */
function Service({ url }: { url: string }) {
  if (!/^https?:/.test(url) || !URL.canParse(url)) return <span className="soft">{words.noAddress}</span>
  return (
    <a href={url} rel="noreferrer nofollow" target="_blank">
      {new URL(url).host}
    </a>
  )
}
