import { Link, useSearchParams } from 'react-router'
import { BASE, type Schemas } from '../api/client'
import { soldModels } from '../api/queries'
import { formatScore, formatWhole } from '../lib/amounts'
import { Page, Tokens } from '../parts/basics'
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
    </Page>
  )
}

function ModelLink({ of }: { of: Schemas['SoldModel'] }) {
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
