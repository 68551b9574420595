import { useSearchParams } from 'react-router'
import { nodes, type NodeQuery } from '../api/queries'
import { formatBps, formatMillionths } from '../lib/amounts'
import { isRole, ROLES } from '../lib/enums'
import { Listed } from '../parts/asked'
import { Account, Page, Tokens } from '../parts/basics'
import { Choice } from '../parts/choice'
import { Table } from '../parts/table'
import { say } from '../strings'

const words = say.nodes
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
  const change = (name: string, value: string) =>
    setSearch((before) => {
      before.set(name, value)
      return before
    })
  const { columns } = words
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
