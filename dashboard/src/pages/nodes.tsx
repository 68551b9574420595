import { useSearchParams } from 'react-router'
import type { Role } from '../api/client'
import { nodes, type NodeQuery } from '../api/queries'
import { formatBps, formatMillionths } from '../lib/amounts'
import { Listed } from '../parts/asked'
import { Account, Page, Tokens } from '../parts/basics'
import { Table } from '../parts/table'
import { say } from '../strings'

const words = say.nodes
const DAYS = [1, 7, 30, 90, 365] as const
const SORTS = {
  '-yield': words.bySort.yield,
  '-active': words.bySort.assets,
  commission: words.bySort.commission,
  '-rewarded': words.bySort.rewarded,
  burnt: words.bySort.burnt,
} as const
type Sort = keyof typeof SORTS

export function isRole(text: string | null | undefined): text is Role {
  return typeof text === 'string' && text in say.role
}

function isSort(text: string | null): text is Sort {
  return text !== null && text in SORTS
}

export default function Nodes() {
  const [search, setSearch] = useSearchParams()
  const role = search.get('role')
  const sort = search.get('sort')
  const days = Number(search.get('days'))
  const query = {
    limit: 50,
    role: isRole(role) ? role : 'hospital',
    sort: isSort(sort) ? sort : '-yield',
    days: DAYS.find((one) => one === days) ?? 30,
  } satisfies NodeQuery
  const change = (name: string, value: string) =>
    setSearch((before) => {
      before.set(name, value)
      return before
    })
  const { columns } = words
  return (
    <Page title={words.title} lead={words.yieldMeans}>
      <div className="tools">
        <label>
          {words.role}
          <select value={query.role} onChange={(event) => change('role', event.target.value)}>
            {Object.entries(say.roles).map(([name, shown]) => (
              <option key={name} value={name}>
                {shown}
              </option>
            ))}
          </select>
        </label>
        <label>
          {words.sort}
          <select value={query.sort} onChange={(event) => change('sort', event.target.value)}>
            {Object.entries(SORTS).map(([name, shown]) => (
              <option key={name} value={name}>
                {shown}
              </option>
            ))}
          </select>
        </label>
        <label>
          {words.days}
          <select value={query.days} onChange={(event) => change('days', event.target.value)}>
            {DAYS.map((one) => (
              <option key={one} value={one}>
                {words.daysOf(one)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <section className="card" aria-label={words.title}>
        <Listed query={nodes(query)}>
          {(items) => (
            <Table
              caption={words.title}
              rows={items}
              name={(node) => node.node}
              empty={words.none}
              columns={[
                { name: columns.node, cell: (node) => <Account of={node.node} as={node.role} /> },
                {
                  name: columns.yield,
                  number: true,
                  means: words.yieldMeans,
                  cell: (node) => (
                    <span
                      className={node.realised_yield.net < 0 ? 'bad' : ''}
                      title={`${formatMillionths(node.realised_yield.earned, true)} ${say.node.earned}, ${formatMillionths(-node.realised_yield.lost)} ${say.node.lost}`}
                    >
                      {formatMillionths(node.realised_yield.net, true)}
                    </span>
                  ),
                },
                { name: columns.commission, number: true, cell: (node) => formatBps(node.commission_bps) },
                { name: columns.stake, number: true, cell: (node) => <Tokens of={node.active} /> },
                { name: columns.locked, number: true, cell: (node) => <Tokens of={node.locked} /> },
                { name: columns.rewarded, number: true, cell: (node) => <Tokens of={node.rewarded} /> },
                {
                  name: columns.slashes,
                  number: true,
                  cell: (node) => (
                    <span className={node.slashes ? 'bad' : ''}>
                      {node.slashes ? (
                        <>
                          {node.slashes} × (<Tokens of={node.burnt} />)
                        </>
                      ) : (
                        '–'
                      )}
                    </span>
                  ),
                },
                { name: columns.rounds, number: true, cell: (node) => node.rounds },
                { name: columns.delegators, number: true, cell: (node) => node.delegators },
              ]}
            />
          )}
        </Listed>
      </section>
    </Page>
  )
}
