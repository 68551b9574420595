import { useState } from 'react'
import { Link, useSearchParams } from 'react-router'
import { chosenOf } from '../lib/compared'
import { isRole } from '../lib/enums'
import { rowsAtFirst } from '../lib/screen'
import { Account, Card, Crumbs, Fault, Loading, Page, useLater } from '../parts/basics'
import { decisionsOf, useFound, type Decision } from '../parts/decision'
import { Table } from '../parts/table'
import * as say from '../strings'

const words = say.compare

export default function Compare() {
  const [search] = useSearchParams()
  const given = search.get('role')
  const role = isRole(given) ? given : 'hospital'
  const nodes = chosenOf(search.get('of'))
  const { found, error } = useFound(nodes, role)
  const known = found.filter((one) => one !== null)
  const isLoading = known.length < nodes.length && !error // at once, so that nothing jumps
  const rows = known.map(decisionsOf)
  const lines = [{ name: say.columns.node, at: -1 }, ...(rows[0] ?? []).map(({ name }, at) => ({ name, at }))]
  const isDue = useLater(known.length > 0 && !isLoading)
  const [few] = useState(() => rowsAtFirst() / 2) // of a phone; a desk has all
  return (
    <Page title={words.title} lead={words.lead} crumbs={<Crumbs role={role} />}>
      {error && <Fault error={error} />}
      {nodes.length === 0 && (
        <p>
          {words.none} <Link to={`/nodes?role=${role}`}>{words.back}</Link>
        </p>
      )}
      {isLoading && <Loading isTall />}
      {known.length > 0 && !isLoading && (
        <Card title={say.roles[role]}>
          <Table
            caption={words.title}
            isWhole
            rows={isDue ? lines : lines.slice(0, few)}
            keyOf={(row) => row.name}
            columns={[
              { text: words.decision, of: (row) => <b>{row.name}</b> },
              ...known.map(({ node }, n) => ({
                text: `${n + 1}. ${node.node.slice(0, 6)}…`,
                of: (row: { at: number }) => {
                  const one = rows[n]?.[row.at]
                  return one ? <Value of={one} /> : <Account of={node.node} as={role} />
                },
              })),
            ]}
          />
        </Card>
      )}
    </Page>
  )
}

function Value({ of }: { of: Decision }) {
  return (
    <>
      {of.value}
      {of.beside !== undefined && (
        <>
          <br />
          <span className="small soft">{of.beside}</span>
        </>
      )}
    </>
  )
}
