import { lazy, Suspense, useState } from 'react'
import { useParams } from 'react-router'
import type { Schemas } from '../api/client'
import { round as roundOf } from '../api/queries'
import { formatScore } from '../lib/amounts'
import { Asked } from '../parts/asked'
import {
  Account,
  Card,
  Crumbs,
  Hash,
  Later,
  Loading,
  OutcomeBadge,
  Page,
  Time,
  Tokens,
} from '../parts/basics'
import { Table } from '../parts/table'
import { say } from '../strings'
import Missing from './missing'

const Verify = lazy(() => import('../verify/panel'))
const words = say.round
type Round = Schemas['Round']

export default function RoundPage() {
  const { task, round } = useParams()
  const [number, which] = [Number(task), Number(round)]
  if (!Number.isSafeInteger(number) || !Number.isSafeInteger(which) || number < 1 || which < 0)
    return <Missing />
  const crumbs = [
    ['/tasks', say.tasks.title],
    [`/tasks/${number}`, say.task.title(number)],
  ] as const
  return (
    <Asked query={roundOf(number, which)}>
      {(found) => (
        <Page
          title={words.title(which, number)}
          crumbs={<Crumbs to={crumbs} />}
          beside={<OutcomeBadge of={found} />}
        >
          <Verifying task={number} round={which} key={`${number}/${which}`} />
          <Cohorts of={found} />
          <Later>
            <Committee of={found} />
            <Payments of={found} />
            <Commitments of={found} />
            <Evidence of={found} />
          </Later>
        </Page>
      )}
    </Asked>
  )
}

function Verifying({ task, round }: { task: number; round: number }) {
  const [started, setStarted] = useState(false)
  return (
    <Card title={words.verify} means={words.verifyMeans}>
      {started ? (
        <Suspense fallback={<Loading />}>
          <Verify task={task} round={round} />
        </Suspense>
      ) : (
        <div>
          <button type="button" className="main" onClick={() => setStarted(true)}>
            {words.verifyStart}
          </button>
        </div>
      )}
    </Card>
  )
}

function Cohorts({ of }: { of: Round }) {
  const columns = words.cohortColumns
  return (
    <Card title={words.cohorts}>
      <Table
        caption={words.cohorts}
        rows={of.cohorts}
        name={(cohort) => cohort.cohort}
        empty={say.none}
        columns={[
          { name: columns.cohort, cell: (one) => one.cohort },
          { name: columns.members, cell: (one) => one.members.join(', ') },
          { name: columns.survivors, cell: (one) => one.survivors.join(', ') || '–' },
          {
            name: columns.median,
            number: true,
            cell: (one) => (one.median === null ? '–' : formatScore(one.median)),
          },
          { name: columns.accepted, cell: (one) => <Accepted of={one.accepted} /> },
          { name: columns.sum, cell: (one) => (one.is_turned ? words.turned : words.fate[one.fate]) },
          { name: columns.hash, cell: (one) => <OnChain of={one} outcome={of.outcome} /> },
        ]}
      />
    </Card>
  )
}

function Accepted({ of }: { of: boolean | null }) {
  if (of === null) return <>{words.unknown}</>
  return <span className={of ? 'good' : 'bad'}>{of ? words.yes : words.no}</span>
}

/** No event says what the contract expected of a canary round's sums, but no round is settled before it has compared. */
function OnChain({ of, outcome }: { of: Schemas['CohortView']; outcome: Round['outcome'] }) {
  if (
    of.blobs.some(
      ({ expected, published }) => expected !== null && published !== null && expected !== published,
    )
  )
    return <span className="bad">{words.differs}</span>
  const isCompared =
    of.blobs.length > 0 && of.blobs.every((blob) => blob.expected !== null && blob.published !== null)
  if (isCompared || (outcome === 'settled' && of.fate === 'published'))
    return <span className="good">{words.match}</span>
  return <>{words.waits}</>
}

function Scores({ of, cohorts }: { of: Schemas['Ballot']; cohorts: number }) {
  if (!of.scores) return <>–</>
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

function Committee({ of }: { of: Round }) {
  const { ballots, spread } = of.committee
  const columns = words.ballotColumns
  const spreads = words.spreadColumns
  return (
    <Card title={words.committee} means={words.committeeMeans}>
      <Table
        caption={words.committee}
        rows={ballots}
        name={(ballot) => ballot.voter}
        empty={words.noCommittee}
        columns={[
          { name: columns.voter, cell: (ballot) => <Account of={ballot.voter} as="voter" /> },
          {
            name: columns.verdict,
            cell: (ballot) => (
              <span
                className={
                  ballot.verdict === 'not_revealed' || ballot.verdict === 'does_not_match' ? 'bad' : ''
                }
              >
                {words.verdict[ballot.verdict]}
              </span>
            ),
          },
          {
            name: columns.scores,
            cell: (ballot) => <Scores of={ballot} cohorts={of.cohorts.length} />,
          },
        ]}
      />
      {spread.length > 0 && (
        <>
          <h3>{words.spread}</h3>
          <Table
            caption={words.spread}
            rows={spread}
            name={(one) => one.cohort}
            empty=""
            columns={[
              { name: spreads.cohort, cell: (one) => one.cohort },
              { name: spreads.votes, number: true, cell: (one) => one.votes },
              { name: spreads.lowest, number: true, cell: (one) => formatScore(one.lowest) },
              { name: spreads.lower, number: true, cell: (one) => formatScore(one.lower_quartile) },
              { name: spreads.median, number: true, cell: (one) => formatScore(one.median) },
              { name: spreads.upper, number: true, cell: (one) => formatScore(one.upper_quartile) },
              { name: spreads.highest, number: true, cell: (one) => formatScore(one.highest) },
            ]}
          />
        </>
      )}
    </Card>
  )
}

function Payments({ of }: { of: Round }) {
  const columns = words.paymentColumns
  return (
    <Card title={words.payments}>
      <Table
        caption={words.payments}
        rows={of.payments}
        name={(payment) => `${payment.block}-${payment.log_index}`}
        empty={words.noPayments}
        columns={[
          {
            name: columns.kind,
            cell: (payment) => (
              <span className={payment.kind === 'slash' ? 'bad' : ''}>{words.kind[payment.kind]}</span>
            ),
          },
          {
            name: columns.account,
            cell: (payment) => (
              <Account of={payment.account} {...(payment.role ? { as: payment.role } : {})} />
            ),
          },
          { name: columns.amount, number: true, cell: (payment) => <Tokens of={payment.amount} /> },
          {
            name: columns.why,
            cell: (payment) =>
              payment.reason ? say.reason[payment.reason] : payment.role ? say.role[payment.role] : '',
          },
        ]}
      />
    </Card>
  )
}

function Commitments({ of }: { of: Round }) {
  const columns = words.commitmentColumns
  return (
    <Card title={words.commitments}>
      <Table
        caption={words.commitments}
        rows={of.commitments}
        name={(one) => one.transaction + one.hospital}
        empty={say.none}
        columns={[
          { name: columns.hospital, cell: (one) => <Account of={one.hospital} as="hospital" /> },
          {
            name: columns.points,
            cell: (one) =>
              one.points.map((point) => (
                <div key={point}>
                  <Hash of={point} />
                </div>
              )),
          },
          { name: columns.block, number: true, cell: (one) => one.block },
        ]}
      />
    </Card>
  )
}

function Evidence({ of }: { of: Round }) {
  const columns = words.evidenceColumns
  return (
    <Card title={words.evidence} means={words.evidenceMeans}>
      <details>
        <summary>{words.events(of.evidence.length)}</summary>
        <Table
          caption={words.evidence}
          rows={of.evidence}
          name={(one) => `${one.block}-${one.log_index}`}
          empty={say.none}
          columns={[
            { name: columns.name, cell: (one) => one.name },
            { name: columns.block, number: true, cell: (one) => one.block },
            { name: columns.log, number: true, cell: (one) => one.log_index },
            { name: columns.transaction, cell: (one) => <Hash of={one.transaction} /> },
            { name: columns.time, cell: (one) => <Time of={one.time} /> },
          ]}
        />
      </details>
    </Card>
  )
}
