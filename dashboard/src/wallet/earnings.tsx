import type { Address } from 'viem'
import { byMonth } from '../lib/series'
import { Fault, Figure, Loading, Tokens } from '../parts/basics'
import { TableCard } from '../parts/table'
import { earnings as words } from '../strings/earnings'
import * as say from '../strings'
import { useClaims, type Claim } from './positions'

const WIDTH = 120 // pixels of the longest bar

/** Earnings by month. `claimable`: vested rewards that are not claimed. */
export function Earnings({ account, claimable }: { account: Address; claimable: bigint }) {
  const { data, error, refetch } = useClaims(account)
  if (!data) return error ? <Fault error={error} retry={() => void refetch()} /> : <Loading />
  const rows = [...(claimable > 0n ? [{ month: words.unclaimed, amount: claimable }] : []), ...byMonth(data)]
  const most = rows.reduce((largest, { amount }) => (amount > largest ? amount : largest), 1n)
  return (
    <TableCard
      title={words.title}
      means={words.means}
      rows={rows}
      keyOf={(row) => row.month}
      empty={say.account.noHistory}
      columns={[
        { text: words.month, of: (row) => row.month },
        { tokens: say.columns.earned, of: (row) => row.amount },
        { text: words.share, of: (row) => <Bar width={Number((row.amount * BigInt(WIDTH)) / most)} /> },
      ]}
    />
  )
}

function Bar({ width }: { width: number }) {
  return (
    <svg className="bar line-1" width={WIDTH} height="12" aria-hidden="true">
      <rect width={Math.max(1, width)} y="1" height="10" />
    </svg>
  )
}

/** The claims and the vested rewards together; without a value until the claims are read. */
export function EarnedFigure({ account, claimable }: { account: Address; claimable: bigint }) {
  const { data } = useClaims(account)
  return (
    <Figure name={words.earned} value={data ? <Tokens of={sum(data) + claimable} /> : '…'} beside={words.earnedMeans} />
  )
}

function sum(claims: readonly Claim[]): bigint {
  return claims.reduce((total, { amount }) => total + amount, 0n)
}
