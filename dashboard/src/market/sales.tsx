/** Sales of a model or an ensemble by day, and the ensembles that sell a model with others. */
import { useInfiniteQuery } from '@tanstack/react-query'
import type { Schemas } from '../api/client'
import { ensemblesOf } from '../api/queries'
import { formatMillionths, formatWhole } from '../lib/amounts'
import { weightIn } from '../lib/ensembles'
import { Card } from '../parts/basics'
import { SalesChart } from '../parts/charts'
import { ListedTable } from '../parts/table'
import * as say from '../strings'
import { EnsembleLink } from './offers'

const words = say.market

/** Nothing before the first prediction: a model that ensembles alone sell has payments, and no predictions of its own. */
export function SalesByDay({ of }: { of: readonly Schemas['SoldDay'][] }) {
  if (!of.at(-1)?.predictions) return null
  return (
    <Card title={words.byDay}>
      <SalesChart of={of} />
    </Card>
  )
}

/** The ensembles with a task; nothing without one. */
export function InEnsembles({ task }: { task: number }) {
  const query = ensemblesOf(task)
  const { data, error } = useInfiniteQuery(query)
  if (!error && !data?.pages[0]?.items.length) return null
  return (
    <Card title={words.inEnsembles} means={words.inEnsemblesMean}>
      <ListedTable
        caption={words.inEnsembles}
        query={query}
        keyOf={({ number }) => number}
        columns={[
          { text: words.anEnsemble, of: ({ number }) => <EnsembleLink number={number} /> },
          { number: words.weight, of: ({ members }) => formatMillionths(weightIn(members, task)) },
          { number: words.members, of: ({ members }) => members.length },
          {
            number: words.predictions,
            of: ({ predictions }) => formatWhole(predictions),
            means: words.predictionsMean,
          },
          { tokens: words.sold, of: ({ sold }) => sold },
        ]}
      />
    </Card>
  )
}
