import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams } from 'react-router'
import { BASE } from '../api/client'
import { profile } from '../api/profiles'
import { delegations, history, unbondings } from '../api/queries'
import { isAccount } from '../lib/accounts'
import { formatTokens } from '../lib/amounts'
import { Account, Ago, Card, Kind, Later, Page, Reason, TaskLink, Time, Tokens } from '../parts/basics'
import { Exact } from '../parts/exact'
import { ListedTable } from '../parts/table'
import { Who } from '../parts/who'
import * as say from '../strings'
import Missing from './missing'

const words = say.account
const { columns } = say

export default function AccountPage() {
  const { account } = useParams()
  if (!account || !isAccount(account)) return <Missing />
  return (
    <Page title={words.title} lead={<Exact of={account} as="address" />}>
      <Body account={account} key={account} />
    </Page>
  )
}

/** All is asked for at once, and each card comes once those above it have their height. */
function Body({ account }: { account: string }) {
  const staked = delegations({ delegator: account, limit: 50 })
  const ofProfile = useQuery(profile(account))
  const ofStaked = useInfiniteQuery(staked)
  const ofUnbonding = useInfiniteQuery(unbondings(account))
  return (
    <>
      <Who of={account} />
      <Later after={!ofProfile.isPending}>
        <Staked query={staked} />
        <Later after={!ofStaked.isPending}>
          <Unbonding account={account} />
          <Later after={!ofUnbonding.isPending}>
            <History account={account} />
          </Later>
        </Later>
      </Later>
    </>
  )
}

function Staked({ query }: { query: ReturnType<typeof delegations> }) {
  return (
    <Card title={words.delegations}>
      <ListedTable
        query={query}
        caption={words.delegations}
        keyOf={(one) => one.node + one.role}
        empty={words.none}
        columns={[
          { text: columns.node, of: (one) => <Account of={one.node} as={one.role} /> },
          { text: columns.role, of: (one) => say.role[one.role] },
          {
            number: columns.worth,
            of: (one) => (one.is_wiped ? <span className="bad">{words.wiped}</span> : <Tokens of={one.worth} />),
          },
          { tokens: columns.delegated, of: (one) => one.delegated },
          { tokens: columns.withdrawn, of: (one) => one.withdrawn },
          { tokens: columns.claimed, of: (one) => one.claimed },
          { text: columns.since, of: (one) => <Ago of={one.since} /> },
        ]}
      />
    </Card>
  )
}

function Unbonding({ account }: { account: string }) {
  return (
    <Card title={words.unbonding}>
      <ListedTable
        query={unbondings(account)}
        caption={words.unbonding}
        keyOf={(one) => one.request}
        empty={words.noUnbonding}
        columns={[
          { text: columns.node, of: (one) => <Account of={one.node} as={one.role} /> },
          { text: columns.role, of: (one) => say.role[one.role] },
          { tokens: columns.worth, of: (one) => one.worth },
          { text: columns.matures, of: (one) => <Ago of={one.matures_at} /> },
        ]}
      />
    </Card>
  )
}

export function History({ account }: { account: string }) {
  return (
    <Card title={words.history}>
      <p>
        <a href={`${BASE}/v1/accounts/${account}/history.csv`} download>
          {words.csv}
        </a>
      </p>
      <ListedTable
        query={history(account)}
        caption={words.history}
        keyOf={(one) => `${one.block}-${one.log_index}`}
        empty={words.noHistory}
        columns={[
          { text: columns.time, of: (one) => <Time of={one.time} /> },
          { text: columns.kind, of: (one) => <Kind of={one.kind} /> },
          {
            number: columns.amount,
            of: (one) =>
              one.amount === null ? words.shares(formatTokens(BigInt(one.shares ?? 0))) : <Tokens of={one.amount} />,
          },
          {
            text: columns.source,
            of: (one) => {
              if (one.task !== null) return <TaskLink task={one.task} />
              return one.node && one.role ? <Account of={one.node} as={one.role} /> : ''
            },
          },
          { text: columns.why, of: (one) => <Reason of={one.reason} /> },
        ]}
      />
    </Card>
  )
}
