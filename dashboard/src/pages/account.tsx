import { useState } from 'react'
import { Link, useNavigate, useParams } from 'react-router'
import { BASE } from '../api/client'
import { delegations, history, unbondings } from '../api/queries'
import { isAccount } from '../lib/accounts'
import { formatTokens } from '../lib/amounts'
import { Listed } from '../parts/asked'
import { Account, Ago, Card, Page, Time, Tokens } from '../parts/basics'
import { Table } from '../parts/table'
import { say } from '../strings'
import Missing from './missing'

const words = say.account

export function AccountBooks({ account, only }: { account: string; only?: 'history' }) {
  return (
    <>
      {!only && <Staked account={account} />}
      <History account={account} />
    </>
  )
}

function Staked({ account }: { account: string }) {
  const { columns } = words
  return (
    <>
      <Card title={words.delegations}>
        <Listed query={delegations({ delegator: account, limit: 50 })}>
          {(items) => (
            <Table
              caption={words.delegations}
              rows={items}
              name={(one) => one.node + one.role}
              empty={words.none}
              columns={[
                { name: columns.node, cell: (one) => <Account of={one.node} as={one.role} /> },
                { name: columns.role, cell: (one) => say.role[one.role] },
                {
                  name: columns.worth,
                  number: true,
                  cell: (one) =>
                    one.is_wiped ? <span className="bad">{words.wiped}</span> : <Tokens of={one.worth} />,
                },
                { name: columns.delegated, number: true, cell: (one) => <Tokens of={one.delegated} /> },
                { name: columns.withdrawn, number: true, cell: (one) => <Tokens of={one.withdrawn} /> },
                { name: columns.claimed, number: true, cell: (one) => <Tokens of={one.claimed} /> },
                { name: columns.since, cell: (one) => <Ago of={one.since} /> },
              ]}
            />
          )}
        </Listed>
      </Card>
      <Card title={words.unbonding}>
        <Listed query={unbondings(account)}>
          {(items) => (
            <Table
              caption={words.unbonding}
              rows={items}
              name={(one) => one.request}
              empty={words.noUnbonding}
              columns={[
                { name: columns.node, cell: (one) => <Account of={one.node} as={one.role} /> },
                { name: columns.role, cell: (one) => say.role[one.role] },
                { name: columns.worth, number: true, cell: (one) => <Tokens of={one.worth} /> },
                { name: words.matures, cell: (one) => <Ago of={one.matures_at} /> },
              ]}
            />
          )}
        </Listed>
      </Card>
    </>
  )
}

function History({ account }: { account: string }) {
  const { historyColumns } = words
  return (
    <>
      <Card title={words.history}>
        <p>
          <a href={`${BASE}/v1/accounts/${account}/history.csv`} download>
            {words.csv}
          </a>
        </p>
        <Listed query={history(account)}>
          {(items) => (
            <Table
              caption={words.history}
              rows={items}
              name={(one) => `${one.block}-${one.log_index}`}
              empty={words.noHistory}
              columns={[
                { name: historyColumns.time, cell: (one) => <Time of={one.time} /> },
                {
                  name: historyColumns.what,
                  cell: (one) => (
                    <span className={one.kind === 'slash' ? 'bad' : ''}>{words.kind[one.kind]}</span>
                  ),
                },
                {
                  name: historyColumns.amount,
                  number: true,
                  cell: (one) =>
                    one.amount === null ? (
                      words.shares(formatTokens(BigInt(one.shares ?? 0)))
                    ) : (
                      <Tokens of={one.amount} />
                    ),
                },
                {
                  name: historyColumns.where,
                  cell: (one) => {
                    if (one.task !== null)
                      return <Link to={`/tasks/${one.task}`}>{say.task.title(one.task)}</Link>
                    return one.node && one.role ? <Account of={one.node} as={one.role} /> : ''
                  },
                },
                { name: historyColumns.why, cell: (one) => (one.reason ? say.reason[one.reason] : '') },
              ]}
            />
          )}
        </Listed>
      </Card>
    </>
  )
}

export default function AccountPage() {
  const { account } = useParams()
  if (!account || !isAccount(account)) return <Missing />
  return (
    <Page title={words.title} lead={<code className="wrap">{account}</code>}>
      <AccountBooks account={account} key={account} />
    </Page>
  )
}

export function LookUp() {
  const navigate = useNavigate()
  const [bad, setBad] = useState(false)
  return (
    <form
      className="tools"
      onSubmit={(event) => {
        event.preventDefault()
        const given = new FormData(event.currentTarget).get('account')
        const account = typeof given === 'string' ? given.trim() : ''
        setBad(!isAccount(account))
        if (isAccount(account)) void navigate(`/accounts/${account}`)
      }}
    >
      <label>
        {words.look}
        <input
          name="account"
          size={46}
          placeholder={words.lookHint}
          autoComplete="off"
          spellCheck={false}
          aria-invalid={bad}
          aria-describedby="look-bad"
        />
      </label>
      <button type="submit">{words.show}</button>
      <p id="look-bad" className="bad" role="status">
        {bad && words.lookBad}
      </p>
    </form>
  )
}
