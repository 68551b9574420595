/** An arena on its task's page: the leaderboard, the round that is judged, and each trainer's curve. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Schemas } from '../api/client'
import { standings } from '../api/queries'
import { formatScore, formatShare } from '../lib/amounts'
import { curveOf, leadersOf, openOf, type Leader } from '../lib/standings'
import * as say from '../strings'
import { arena as words } from '../strings/arena'
import { Account, Card, Fault, Loading } from './basics'
import { TrainerChart } from './charts'
import { Choice } from './choice'
import { Table } from './table'

const { columns } = say

export default function Arena({ task }: { task: Schemas['Task'] }) {
  const { data, error, refetch } = useInfiniteQuery(standings(task.task))
  const rounds = data?.pages.flatMap((page) => page.items)
  const open = openOf(rounds ?? [])
  return (
    <Card title={words.title} means={words.means(formatShare(task.terms.rank_decay_bps / 10_000))}>
      {error && <Fault error={error} retry={() => void refetch()} />}
      {!rounds && !error && <Loading isTall />}
      {open && <p role="status">{words.judging(open.round, open.trainers)}</p>}
      {rounds && <Board of={leadersOf(rounds)} />}
      {rounds && rounds.length > 0 && <Curve of={rounds} />}
    </Card>
  )
}

function Board({ of }: { of: readonly Leader[] }) {
  return (
    <Table
      caption={words.title}
      rows={of}
      keyOf={(one) => one.hospital}
      empty={words.nobody}
      columns={[
        { number: words.place, of: (one) => of.indexOf(one) + 1 },
        { text: columns.hospital, of: (one) => <Account of={one.hospital} as="hospital" /> },
        { number: words.rank, of: (one) => one.rank ?? '–' },
        { number: columns.median, of: (one) => (one.median === null ? '–' : formatScore(one.median)) },
        { number: words.firsts, of: (one) => one.firsts },
        { number: words.ranked, of: (one) => one.ranked },
        { tokens: columns.earned, of: (one) => one.earned },
      ]}
    />
  )
}

function Curve({ of }: { of: readonly Schemas['ArenaRound'][] }) {
  const leaders = leadersOf(of)
  const [chosen, choose] = useState('')
  const hospital = leaders.some((one) => one.hospital === chosen) ? chosen : (leaders[0]?.hospital ?? '')
  return (
    <>
      <h3>{words.curve}</h3>
      <Choice
        name={columns.hospital}
        value={hospital}
        of={leaders.map((one, index) => [one.hospital, words.choice(index + 1, one.hospital)] as const)}
        change={choose}
      />
      <TrainerChart caption={words.curve} of={curveOf(of, hospital)} names={words} />
    </>
  )
}
