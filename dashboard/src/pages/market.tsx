import { Fragment } from 'react'
import { Link, useSearchParams } from 'react-router'
import { BASE, type Schemas } from '../api/client'
import { ensembles, soldModels } from '../api/queries'
import { formatMillionths, formatScore, formatWhole } from '../lib/amounts'
import { EnsembleLink } from '../market/offers'
import { Card, Page, Tokens } from '../parts/basics'
import { ListedTable } from '../parts/table'
import * as say from '../strings'

const words = say.market

export default function Market() {
  const [search, setSearch] = useSearchParams()
  const q = search.get('q') ?? ''
  const asked = q === '' ? {} : { q }
  return (
    <Page title={words.title} lead={words.lead}>
      <form
        className="tools"
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          const entry = new FormData(event.currentTarget).get('q')
          const text = typeof entry === 'string' ? entry.trim() : ''
          setSearch(text === '' ? {} : { q: text })
        }}
      >
        <label>
          {words.search}
          <input type="search" name="q" defaultValue={q} key={q} maxLength={100} autoComplete="off" />
        </label>
        <button type="submit">{words.go}</button>
      </form>
      <section className="card" aria-label={words.title}>
        <ListedTable
          caption={words.title}
          query={soldModels({ limit: 25, ...asked })}
          keyOf={({ task }) => task}
          empty={words.none}
          columns={[
            { text: words.model, of: (model) => <ModelLink of={model} /> },
            { number: words.gain, of: ({ gain }) => (gain === null ? '–' : formatScore(gain)), means: words.gainMeans },
            { number: say.roles.hospital, of: ({ hospitals }) => hospitals },
            { number: words.epsilon, of: ({ epsilon }) => epsilon ?? '–' },
            {
              number: words.from,
              of: ({ offers: [first] }) => (first ? <Price of={first.price} /> : words.noPrice),
            },
            {
              number: words.predictions,
              of: ({ predictions }) => formatWhole(predictions),
              means: words.predictionsMean,
            },
            { tokens: words.sold, of: ({ sold }) => sold },
          ]}
        />
        <p className="small">
          <a href={`${BASE}/v1/models.csv${q && `?q=${encodeURIComponent(q)}`}`} download>
            {words.csv}
          </a>
        </p>
      </section>
      <Ensembles q={q} />
    </Page>
  )
}

function Ensembles({ q }: { q: string }) {
  return (
    <Card title={words.ensembles} means={words.ensemblesMean}>
      <ListedTable
        caption={words.ensembles}
        query={ensembles({ limit: 25, ...(q === '' ? {} : { q }) })}
        keyOf={({ number }) => number}
        empty={words.noEnsembles}
        columns={[
          {
            text: words.anEnsemble,
            of: ({ number }) => <EnsembleLink number={number} />,
          },
          { text: words.members, of: ({ members }) => <Members of={members} /> },
          {
            number: words.from,
            of: ({ offers: [first] }) => (first ? <Price of={first.price} /> : words.noPrice),
          },
          { number: words.servers, of: ({ offers_in_all }) => offers_in_all },
          {
            number: words.predictions,
            of: ({ predictions }) => formatWhole(predictions),
            means: words.predictionsMean,
          },
          { tokens: words.sold, of: ({ sold }) => sold },
        ]}
      />
      <p className="small">
        <a href={`${BASE}/v1/ensembles.csv${q && `?q=${encodeURIComponent(q)}`}`} download>
          {words.ensemblesCsv}
        </a>
      </p>
    </Card>
  )
}

function Members({ of }: { of: readonly Schemas['EnsembleMember'][] }) {
  return of.map((one, at) => (
    <Fragment key={one.task}>
      {at > 0 && ', '}
      <Link to={`/models/${one.task}`}>{one.task}</Link> ({formatMillionths(one.weight)})
    </Fragment>
  ))
}

export function ModelLink({ of }: { of: Pick<Schemas['SoldModel'], 'task' | 'name'> }) {
  return (
    <Link className="named" to={`/models/${of.task}`}>
      <span>{of.task}.</span> <bdi className="clip">{of.name ?? say.tasks.unnamed(of.task)}</bdi>
    </Link>
  )
}

/** A price with all its digits: predictions cost less than a hundredth of a token. */
export function Price({ of }: { of: string | bigint }) {
  return <Tokens of={of} isExact />
}
