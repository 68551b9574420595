/** A task's model for those who would buy its predictions, and for those who trained it. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Fragment } from 'react'
import { Link, useParams } from 'react-router'
import { BASE, type Schemas } from '../api/client'
import { rounds, soldModel, task as taskOf } from '../api/queries'
import { formatMillionths, formatWhole } from '../lib/amounts'
import { questionOf } from '../lib/question'
import { Account, Card, Crumbs, Facts, Figure, Loading, Notice, Page, Tokens } from '../parts/basics'
import { ChartRoom, ProgressChart } from '../parts/charts'
import { Command } from '../parts/command'
import { Loaded } from '../parts/query'
import { Quality } from '../parts/quality'
import { TableCard } from '../parts/table'
import * as say from '../strings'
import { Offers, ToBuy, ToCheck } from '../market/offers'
import { InEnsembles, SalesByDay } from '../market/sales'
import { Price } from './market'
import Missing from './missing'

const words = say.market

export default function Model() {
  const number = Number(useParams().task)
  if (!Number.isSafeInteger(number) || number < 1) return <Missing />
  return (
    <Loaded query={soldModel(number)}>
      {(model) => (
        <Page
          title={model.name ?? say.tasks.unnamed(number)}
          crumbs={<Crumbs market />}
          beside={<Link to={`/tasks/${number}`}>{words.taskPage(number)}</Link>}
          lead={<bdi>{questionOf(model.asked)}</bdi>}
        >
          <CannotSell of={model} />
          {model.epsilon !== null && <Notice kind="good">{words.privacy(String(model.epsilon))}</Notice>}
          <Figures of={model} />
          <Training task={number} model={model} />
          {model.terms && <Sales of={model} />}
          {model.is_minted && <ToBuy number={number} offers={model.offers} />}
          <ToCheck />
        </Page>
      )}
    </Loaded>
  )
}

function CannotSell({ of: model }: { of: Schemas['ModelSales'] }) {
  if (model.terms === null) return <Notice kind="wait">{words.notAllowed}</Notice>
  if (model.is_minted) return null
  if (model.phase !== 'ended') return <Notice kind="wait">{words.notEnded}</Notice>
  return (
    <div className="notice wait">
      <span>{words.notMinted}</span>
      <Command of={`consilium shares mint ${model.task} --artifacts artifacts`} />
    </div>
  )
}

function Figures({ of: model }: { of: Schemas['ModelSales'] }) {
  const [cheapest] = model.offers
  return (
    <dl className="figures">
      <Figure name={words.from} value={cheapest ? <Price of={cheapest.price} /> : words.noPrice} />
      <Figure name={words.predictions} value={formatWhole(model.predictions)} beside={words.predictionsMean} />
      <Figure name={words.buyers} value={formatWhole(model.buyers)} />
      <Figure name={words.sold} value={<Tokens of={model.sold} />} />
      <Figure name={words.paid} value={<Tokens of={model.paid} />} />
      {model.epsilon !== null && <Figure name={say.task.epsilon} value={model.epsilon} />}
    </dl>
  )
}

/** The model and its training, of the task's own record. */
function Training({ task: number, model }: { task: number; model: Schemas['ModelSales'] }) {
  const { data: task } = useQuery(taskOf(number))
  const { data } = useInfiniteQuery(rounds(number))
  if (!task) return <Loading />
  const hospitals = task.participants.filter(({ role }) => role === 'hospital')
  const { asked, spec } = task
  return (
    <>
      <Card title={words.about} means={words.aboutMeans}>
        <Facts
          of={[
            ...(spec ? [[words.asks, <bdi key="asks">{spec.question}</bdi>] as const] : []),
            ...(asked ? [[words.inputs, words.inputsOf(asked.inputs)] as const] : []),
            ...(spec ? [[words.kind, `${spec.model}, ${spec.data}`] as const] : []),
            [`${words.trainedBy} (${hospitals.length})`, <Nodes key="nodes" of={hospitals} />],
            [say.columns.operator, <Account key="operator" of={task.operator} />],
            ...(model.terms ? [[words.terms, say.task.saleTerms(model.terms)] as const] : []),
          ]}
        />
      </Card>
      <Quality task={task} />
      <Card title={words.score} means={say.task.progressMeans}>
        {data ? <ProgressChart of={data.pages.flatMap((page) => page.items)} metric={spec?.metric} /> : <ChartRoom />}
      </Card>
    </>
  )
}

function Nodes({ of }: { of: readonly Schemas['Member'][] }) {
  return of.map(({ account }, at) => (
    <Fragment key={account}>
      {at > 0 && ', '}
      <Account of={account} as="hospital" />
    </Fragment>
  ))
}

function Sales({ of: model }: { of: Schemas['ModelSales'] }) {
  return (
    <>
      <Offers of={model} />
      <TableCard
        title={words.earnings}
        means={words.earningsMean}
        rows={model.holdings}
        keyOf={({ holder }) => holder}
        empty={words.noParts}
        columns={[
          { text: words.party, of: (one) => <Party of={one} /> },
          { text: say.columns.role, of: ({ role }) => words.role[role] },
          { number: words.part, of: ({ share }) => formatMillionths(share) },
          { tokens: say.columns.earned, of: ({ earned }) => earned },
          { tokens: say.columns.claimed, of: ({ claimed }) => claimed },
          { tokens: words.claimable, of: ({ claimable }) => claimable },
        ]}
      >
        <p className="small">
          <a href={`${BASE}/v1/models/${model.task}/earnings.csv`} download>
            {words.earningsCsv}
          </a>
        </p>
      </TableCard>
      <InEnsembles task={model.task} />
      <SalesByDay of={model.days} />
    </>
  )
}

function Party({ of: { account, role } }: { of: Schemas['Holding'] }) {
  return role === 'hospital' || role === 'voter' ? <Account of={account} as={role} /> : <Account of={account} />
}
