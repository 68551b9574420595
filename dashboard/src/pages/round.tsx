import { useQuery } from '@tanstack/react-query'
import { lazy } from 'react'
import { useParams } from 'react-router'
import type { Schemas } from '../api/client'
import { round as roundOf, symbol, task as taskOf } from '../api/queries'
import { formatScore } from '../lib/amounts'
import { outcomeOf } from '../lib/unpaid'
import { Account, Card, Crumbs, Hash, Later, OnDemand, OutcomeBadge, Page, Time, Unfold } from '../parts/basics'
import { Exact } from '../parts/exact'
import { Payouts } from '../parts/payouts'
import { Loaded } from '../parts/query'
import { Table, TableCard } from '../parts/table'
import * as say from '../strings'
import Missing from './missing'

const Verify = lazy(() => import('../verify/panel'))
const words = say.round
const { columns } = say
type Round = Schemas['Round']

export default function RoundPage() {
  const { task, round } = useParams()
  const [number, which] = [Number(task), Number(round)]
  if (!Number.isSafeInteger(number) || !Number.isSafeInteger(which) || number < 1 || which < 0) return <Missing />
  return <Loaded query={roundOf(number, which)}>{(found) => <Shown of={found} />}</Loaded>
}

function Shown({ of }: { of: Round }) {
  const { data: token } = useQuery(symbol())
  const { isPending } = useQuery(taskOf(of.task))
  return (
    <Page
      title={words.title(of.round, of.task)}
      crumbs={<Crumbs task={of.task} />}
      beside={<OutcomeBadge of={of} />}
      lead={outcomeOf(of, token)}
    >
      <Payouts of={of} />
      <Later after={!isPending}>
        <Card title={words.verify} means={words.verifyMeans}>
          <OnDemand open={words.verifyStart} isMain key={`${of.task}/${of.round}`}>
            <Verify task={of.task} round={of.round} />
          </OnDemand>
        </Card>
        <Cohorts of={of} />
        <Later>
          <Committee of={of} />
          <Commitments of={of.commitments} />
          <Evidence of={of.evidence} />
        </Later>
      </Later>
    </Page>
  )
}

function Cohorts({ of }: { of: Round }) {
  return (
    <TableCard
      title={words.cohorts}
      rows={of.cohorts}
      keyOf={(cohort) => cohort.cohort}
      empty={say.none}
      columns={[
        { text: columns.cohort, of: (one) => one.cohort },
        { text: columns.members, of: (one) => one.members.join(', ') },
        { text: columns.survivors, of: (one) => one.survivors.join(', ') || '–' },
        { number: columns.median, of: (one) => (one.median === null ? '–' : formatScore(one.median)) },
        { text: columns.accepted, of: (one) => <Accepted of={one.accepted} /> },
        { text: columns.sum, of: (one) => (one.is_flipped ? words.flipped : words.fate[one.fate]) },
        { text: columns.onChain, of: (one) => <OnChain of={one} outcome={of.outcome} /> },
      ]}
    />
  )
}

function Accepted({ of }: { of: boolean | null }) {
  if (of === null) return words.unknown
  return <span className={of ? 'good' : 'bad'}>{of ? words.yes : words.no}</span>
}

/** No event has the sums that the contract expects in a decoy round, but it compares them before it settles the round. */
function OnChain({ of, outcome }: { of: Schemas['CohortView']; outcome: Round['outcome'] }) {
  const known = of.blobs.filter(({ expected, published }) => expected !== null && published !== null)
  if (known.some((blob) => blob.expected !== blob.published)) return <span className="bad">{words.differs}</span>
  const isCompared = of.blobs.length > 0 && known.length === of.blobs.length
  if (isCompared || (outcome === 'settled' && of.fate === 'published'))
    return <span className="good">{words.match}</span>
  return words.waits
}

function Scores({ of, cohorts }: { of: Schemas['Ballot']; cohorts: number }) {
  if (!of.scores) return '–'
  const shown = of.scores.map((score) => (score === null ? words.invalid : formatScore(score)))
  return (
    <>
      {shown.slice(0, cohorts).join(', ')}
      {shown.length > cohorts && (
        <span className="soft small"> ({words.otherReading(shown.slice(cohorts).join(', '))})</span>
      )}
    </>
  )
}

function Verdict({ of }: { of: Schemas['Ballot']['verdict'] }) {
  const isBad = of === 'not_revealed' || of === 'does_not_match'
  return <span className={isBad ? 'bad' : ''}>{words.verdict[of]}</span>
}

function Committee({ of }: { of: Round }) {
  const { ballots, spread } = of.committee
  return (
    <Card title={words.committee} means={words.committeeMeans}>
      <Table
        caption={words.committee}
        rows={ballots}
        keyOf={(ballot) => ballot.voter}
        empty={words.noCommittee}
        columns={[
          { text: columns.voter, of: (ballot) => <Account of={ballot.voter} as="voter" /> },
          { text: columns.ballot, of: (ballot) => <Verdict of={ballot.verdict} /> },
          { text: columns.scores, of: (ballot) => <Scores of={ballot} cohorts={of.cohorts.length} /> },
        ]}
      />
      {spread.length > 0 && (
        <>
          <h3>{words.spread}</h3>
          <Table
            caption={words.spread}
            rows={spread}
            keyOf={(one) => one.cohort}
            columns={[
              { text: columns.cohort, of: (one) => one.cohort },
              { number: columns.votes, of: (one) => one.votes },
              { number: columns.lowest, of: (one) => formatScore(one.lowest) },
              { number: columns.lower, of: (one) => formatScore(one.lower_quartile) },
              // The contract's, as in the table of cohorts.
              { number: columns.median, of: (one) => formatScore(of.cohorts[one.cohort]?.median ?? one.median) },
              { number: columns.upper, of: (one) => formatScore(one.upper_quartile) },
              { number: columns.highest, of: (one) => formatScore(one.highest) },
            ]}
          />
        </>
      )}
    </Card>
  )
}

function Commitments({ of }: { of: Round['commitments'] }) {
  return (
    <TableCard
      title={words.commitments}
      rows={of}
      keyOf={(one) => one.transaction + one.hospital}
      empty={say.none}
      columns={[
        { text: columns.hospital, of: (one) => <Account of={one.hospital} as="hospital" /> },
        {
          text: columns.pointHashes,
          of: (one) =>
            one.point_hashes.map((hash) => (
              <div key={hash}>
                <Hash of={hash} />
              </div>
            )),
        },
        {
          text: columns.points,
          of: (one) =>
            one.points?.map((point) => (
              <div key={point}>
                <Hash of={point} />
              </div>
            )) ?? words.unshown,
        },
        { number: columns.block, of: (one) => one.block },
      ]}
    />
  )
}

function Evidence({ of }: { of: Round['evidence'] }) {
  return (
    <Card title={words.evidence} means={words.evidenceMeans}>
      <Unfold title={words.events(of.length)}>
        <Table
          caption={words.evidence}
          rows={of}
          keyOf={(one) => `${one.block}-${one.log_index}`}
          empty={say.none}
          columns={[
            { text: columns.event, of: (one) => one.name },
            { number: columns.block, of: (one) => one.block },
            { number: columns.log, of: (one) => one.log_index },
            { text: columns.transaction, of: (one) => <Exact of={one.transaction} as="tx" isShort /> },
            { text: columns.time, of: (one) => <Time of={one.time} /> },
          ]}
        />
      </Unfold>
    </Card>
  )
}
