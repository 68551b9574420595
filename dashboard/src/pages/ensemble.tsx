/** An ensemble of models: its members and their weights, its offers, and its sales. */
import { useParams } from 'react-router'
import type { Schemas } from '../api/client'
import { ensemble } from '../api/queries'
import { formatMillionths, formatScore, formatWhole } from '../lib/amounts'
import { orderOf } from '../lib/ensembles'
import { questionOf } from '../lib/question'
import { Offers, ToBuy, ToCheck } from '../market/offers'
import { SalesByDay } from '../market/sales'
import { Crumbs, Figure, Page, Tokens } from '../parts/basics'
import { Loaded } from '../parts/query'
import { TableCard } from '../parts/table'
import * as say from '../strings'
import { ModelLink, Price } from './market'
import Missing from './missing'

const words = say.market

export default function Ensemble() {
  const number = Number(useParams().number)
  if (!Number.isSafeInteger(number) || number < 1) return <Missing />
  return (
    <Loaded query={ensemble(number)}>
      {(found) => (
        <Page
          title={words.ensemble(orderOf(number))}
          crumbs={<Crumbs market />}
          lead={<bdi>{questionOf(found.asked)}</bdi>}
        >
          <Figures of={found} />
          <TableCard
            title={words.members}
            means={words.membersMean}
            rows={found.members}
            keyOf={({ task }) => task}
            columns={[
              { text: words.model, of: (one) => <ModelLink of={one} /> },
              { number: words.gain, of: ({ gain }) => formatScore(Number(gain)), means: words.gainMeans },
              { number: words.weight, of: ({ weight }) => formatMillionths(weight) },
            ]}
          />
          <Offers of={found} />
          <SalesByDay of={found.days} />
          <ToBuy number={number} offers={found.offers} />
          <ToCheck />
        </Page>
      )}
    </Loaded>
  )
}

function Figures({ of }: { of: Schemas['Ensemble'] }) {
  const [cheapest] = of.offers
  return (
    <dl className="figures">
      <Figure name={words.from} value={cheapest ? <Price of={cheapest.price} /> : words.noPrice} />
      <Figure name={words.predictions} value={formatWhole(of.predictions)} beside={words.predictionsMean} />
      <Figure name={words.buyers} value={formatWhole(of.buyers)} />
      <Figure name={words.sold} value={<Tokens of={of.sold} />} />
    </dl>
  )
}
