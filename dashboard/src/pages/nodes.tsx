import { Link, useSearchParams } from 'react-router'
import type { Schemas } from '../api/client'
import { nodes, type NodeQuery } from '../api/queries'
import { chosenOf, MOST_COMPARED } from '../lib/compared'
import { formatBps, formatMillionths } from '../lib/amounts'
import { isRole, ROLES } from '../lib/enums'
import { yieldOf } from '../lib/yields'
import { Account, Page, Tokens } from '../parts/basics'
import { Choice } from '../parts/choice'
import { New } from '../parts/decision'
import { ListedTable } from '../parts/table'
import * as say from '../strings'

const words = say.nodes
const { columns } = say
const DAYS = [1, 7, 30, 90, 365] as const
const SORTS = [
  ['-yield', words.bySort.yield],
  ['-active', words.bySort.assets],
  ['commission', words.bySort.commission],
  ['-rewarded', words.bySort.rewarded],
  ['burnt', words.bySort.burnt],
] as const

export default function Nodes() {
  const [search, setSearch] = useSearchParams()
  const role = search.get('role')
  const sort = search.get('sort')
  const days = Number(search.get('days'))
  const query = {
    limit: 50,
    role: isRole(role) ? role : 'hospital',
    sort: SORTS.find(([one]) => one === sort)?.[0] ?? '-yield',
    days: DAYS.find((one) => one === days) ?? 30,
  } satisfies NodeQuery
  const chosen = chosenOf(search.get('of'))
  const change = (name: string, value: string) =>
    setSearch(
      (before) => {
        before.set(name, value)
        if (name === 'role') before.delete('of')
        return before
      },
      { replace: name === 'of' },
    )
  const choose = (node: string) =>
    change('of', (chosen.includes(node) ? chosen.filter((one) => one !== node) : [...chosen, node]).join())
  return (
    <Page title={words.title} lead={words.yieldMeans}>
      <div className="tools">
        <Choice
          name={words.role}
          value={query.role}
          of={ROLES.map((one) => [one, say.roles[one]] as const)}
          change={(chosen) => change('role', chosen)}
        />
        <Choice name={words.sort} value={query.sort} of={SORTS} change={(chosen) => change('sort', chosen)} />
        <Choice
          name={words.days}
          value={String(query.days)}
          of={DAYS.map((one) => [String(one), words.daysOf(one)] as const)}
          change={(chosen) => change('days', chosen)}
        />
      </div>
      <p aria-live="polite">
        {chosen.length < 2 ? (
          <span className="soft small">{words.compareMost}</span>
        ) : (
          <Link to={`/nodes/compare?role=${query.role}&of=${chosen.join()}`}>{words.compareGo(chosen.length)}</Link>
        )}
      </p>
      <section className="card" aria-label={words.title}>
        <ListedTable
          query={nodes(query)}
          caption={words.title}
          keyOf={(node) => node.node}
          empty={words.none}
          columns={[
            {
              text: words.compare,
              of: ({ node }) => (
                <input
                  type="checkbox"
                  aria-label={words.compareOf(node)}
                  checked={chosen.includes(node)}
                  disabled={chosen.length === MOST_COMPARED && !chosen.includes(node)}
                  onChange={() => choose(node)}
                />
              ),
            },
            { text: columns.node, of: (node) => <Account of={node.node} as={node.role} /> },
            {
              number: columns.yield,
              means: words.yieldMeans,
              of: (node) => <Yield of={node} />,
            },
            { number: columns.commission, of: (node) => formatBps(node.commission_bps) },
            { tokens: columns.active, of: (node) => node.active },
            { tokens: columns.locked, of: (node) => node.locked },
            { tokens: columns.rewarded, of: (node) => node.rewarded },
            { number: columns.slashed, of: (node) => <Slashed of={node} /> },
            { number: columns.rounds, of: (node) => node.rounds },
            { number: columns.delegators, of: (node) => node.delegators },
          ]}
        />
      </section>
    </Page>
  )
}

function Yield({ of }: { of: Schemas['NodeSummary'] }) {
  const found = yieldOf(of)
  if (!found) return <New />
  const { earned, lost } = of.realised_yield
  const parts = `${formatMillionths(earned, true)} ${say.node.earned}, ${formatMillionths(-lost)} ${say.node.lost}`
  return (
    <span className={found.net < 0 ? 'bad' : ''} title={parts}>
      {formatMillionths(found.net, true)}
    </span>
  )
}

function Slashed({ of }: { of: Schemas['NodeSummary'] }) {
  if (!of.slashes) return '–'
  return (
    <span className="bad">
      {of.slashes} × (<Tokens of={of.burnt} />)
    </span>
  )
}
