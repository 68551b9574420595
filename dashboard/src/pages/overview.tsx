import { usePrefetchInfiniteQuery } from '@tanstack/react-query'
import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import { network, tasks } from '../api/queries'
import { formatTokens } from '../lib/amounts'
import { ROLES } from '../lib/enums'
import { Card, Figure, Later, Page, Tokens } from '../parts/basics'
import { Loaded, LoadedList } from '../parts/query'
import { TableCard } from '../parts/table'
import { TaskTable } from '../parts/tasks'
import { say } from '../strings'

const words = say.overview
const { columns } = say
const RECENT = tasks({ sort: '-task', limit: 10 })

export default function Overview() {
  usePrefetchInfiniteQuery(RECENT) // shown below the figures, when their height is known
  return (
    <Page title={words.title} lead={words.lead}>
      <Loaded query={network()}>
        {(found) => (
          <>
            <Figures of={found} />
            <Later>
              <TableCard
                title={words.byRole}
                rows={ROLES}
                keyOf={(role) => role}
                columns={[
                  {
                    text: columns.role,
                    of: (role) => <Link to={`/nodes?role=${role}`}>{say.roles[role]}</Link>,
                  },
                  { number: columns.nodes, of: (role) => found.stake[role]?.nodes ?? 0 },
                  { tokens: words.staked, of: (role) => found.stake[role]?.assets },
                  { tokens: columns.locked, of: (role) => found.stake[role]?.locked },
                  { tokens: words.rewarded, of: (role) => found.stake[role]?.rewarded },
                  { tokens: words.burnt, of: (role) => found.stake[role]?.burnt },
                ]}
              />
              <Card title={words.recent}>
                <LoadedList query={RECENT}>{(items) => <TaskTable items={items} empty={words.noTasks} />}</LoadedList>
              </Card>
            </Later>
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Figures({ of }: { of: Schemas['Network'] }) {
  const all = Object.values(of.tasks).reduce((sum, count) => sum + count, 0)
  const total = (field: 'assets' | 'locked' | 'rewarded' | 'burnt') =>
    ROLES.reduce((sum, role) => sum + BigInt(of.stake[role]?.[field] ?? 0), 0n)
  return (
    <dl className="figures">
      <Figure name={words.tasks} value={all} beside={words.running(all - (of.tasks.ended ?? 0))} />
      <Figure name={words.rounds} value={of.rounds.settled ?? 0} beside={words.voids(of.rounds.void ?? 0)} />
      <Figure name={words.pools} value={<Tokens of={of.pools} />} />
      <Figure
        name={words.staked}
        value={<Tokens of={total('assets')} />}
        beside={words.locked(formatTokens(total('locked')))}
      />
      <Figure name={words.rewarded} value={<Tokens of={total('rewarded')} />} />
      <Figure name={words.burnt} value={<Tokens of={total('burnt')} />} />
      <Figure name={words.delegators} value={of.delegators} />
    </dl>
  )
}
