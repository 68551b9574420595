import { usePrefetchInfiniteQuery } from '@tanstack/react-query'
import { Link } from 'react-router'
import { network, tasks } from '../api/queries'
import { Asked, Listed } from '../parts/asked'
import { Card, Figure, Later, Page, Tokens } from '../parts/basics'
import { TaskTable } from '../parts/tasks'
import { Table } from '../parts/table'
import { formatTokens } from '../lib/amounts'
import { ROLES } from '../lib/enums'
import { say } from '../strings'

const RECENT = tasks({ sort: '-task', limit: 10 })

export default function Overview() {
  usePrefetchInfiniteQuery(RECENT) // shown below the figures, once their height is known
  return (
    <Page title={say.overview.title} lead={say.overview.lead}>
      <Asked query={network()}>
        {(found) => {
          const all = Object.values(found.tasks).reduce((sum, count) => sum + count, 0)
          const staked = sum(ROLES.map((role) => found.stake[role]?.assets))
          const locked = sum(ROLES.map((role) => found.stake[role]?.locked))
          return (
            <>
              <dl className="figures">
                <Figure
                  name={say.overview.tasks}
                  value={all}
                  beside={say.overview.running(all - (found.tasks.ended ?? 0))}
                />
                <Figure
                  name={say.overview.rounds}
                  value={found.rounds.settled ?? 0}
                  beside={say.overview.voids(found.rounds.void ?? 0)}
                />
                <Figure name={say.overview.pools} value={<Tokens of={found.pools} />} />
                <Figure
                  name={say.overview.staked}
                  value={<Tokens of={staked} />}
                  beside={say.overview.locked(formatTokens(locked))}
                />
                <Figure
                  name={say.overview.rewarded}
                  value={<Tokens of={sum(ROLES.map((role) => found.stake[role]?.rewarded))} />}
                />
                <Figure
                  name={say.overview.burnt}
                  value={<Tokens of={sum(ROLES.map((role) => found.stake[role]?.burnt))} />}
                />
                <Figure name={say.overview.delegators} value={found.delegators} />
              </dl>
              <Later>
                <Card title={say.overview.byRole}>
                  <Table
                    caption={say.overview.byRole}
                    rows={ROLES}
                    name={(role) => role}
                    empty=""
                    columns={[
                      {
                        name: say.nodes.role,
                        cell: (role) => <Link to={`/nodes?role=${role}`}>{say.roles[role]}</Link>,
                      },
                      {
                        name: say.overview.nodes,
                        number: true,
                        cell: (role) => found.stake[role]?.nodes ?? 0,
                      },
                      {
                        name: say.overview.staked,
                        number: true,
                        cell: (role) => <Tokens of={found.stake[role]?.assets ?? '0'} />,
                      },
                      {
                        name: say.nodes.columns.locked,
                        number: true,
                        cell: (role) => <Tokens of={found.stake[role]?.locked ?? '0'} />,
                      },
                      {
                        name: say.overview.rewarded,
                        number: true,
                        cell: (role) => <Tokens of={found.stake[role]?.rewarded ?? '0'} />,
                      },
                      {
                        name: say.overview.burnt,
                        number: true,
                        cell: (role) => <Tokens of={found.stake[role]?.burnt ?? '0'} />,
                      },
                    ]}
                  />
                </Card>
                <Card title={say.overview.recent}>
                  <Listed query={RECENT}>
                    {(items) => <TaskTable items={items} empty={say.overview.noTasks} />}
                  </Listed>
                </Card>
              </Later>
            </>
          )
        }}
      </Asked>
    </Page>
  )
}

function sum(amounts: readonly (string | undefined)[]): bigint {
  return amounts.reduce((total, amount) => total + BigInt(amount ?? 0), 0n)
}
