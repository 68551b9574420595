/** Verifies all ended rounds of a task, one after another, and makes a report. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { lazy, useEffect, useRef, useState } from 'react'
import type { Config } from '../api/config'
import { messageOf } from '../lib/errors'
import { formatDuration } from '../lib/times'
import { Account, Card, Fault, Notice, OnDemand, TaskLink, Time } from '../parts/basics'
import { TableCard } from '../parts/table'
import * as say from '../strings'
import { audit as words } from '../strings/audit'
import { readHead, type Head, type Node } from './chain'
import type { Step } from './core'
import { Steps } from './panel'
import { secondsLeft } from './plan'
import {
  canonical,
  digest,
  messageFor,
  roundReport,
  taskReport,
  type Audited,
  type Report,
  type RoundReport,
  type SignedReport,
} from './report'
import { verifyRound } from './session'

const Sign = lazy(() => import('./sign'))
const MADE_BY = `consilium dashboard ${__VERSION__} (${new URL(import.meta.url).pathname.split('/').at(-1) ?? ''})`

interface ToAudit {
  config: Config
  node: Node
  task: number
  coordinates: number | null
}

interface Done {
  report: RoundReport
  steps: Step[]
}

type State =
  | { state: 'idle' | 'reading' }
  | { state: 'running' | 'stopped' | 'done'; head: Head; report: Report; seconds: number }
  | { state: 'failed'; why: string }

const headOf = ({ node, config, task }: ToAudit) =>
  queryOptions({
    queryKey: ['audit', node.name, config.tasks, task],
    retry: false,
    queryFn: () => readHead(node, config, task),
  })

export default function Audit(of: ToAudit) {
  const { now, done, doing, start, stop } = useAudit(of)
  const isBusy = now.state === 'reading' || now.state === 'running'
  return (
    <>
      {now.state === 'idle' && <Plan of={of} />}
      <div className="tools">
        <button type="button" className="main" disabled={isBusy} onClick={start}>
          {now.state === 'idle' ? words.go : words.again}
        </button>
        {isBusy && (
          <button type="button" onClick={stop}>
            {words.cancel}
          </button>
        )}
      </div>
      {now.state === 'reading' && <p role="status">{words.reading}</p>}
      {now.state === 'failed' && <Notice kind="bad">{now.why}</Notice>}
      {'head' in now && (
        <>
          <p role="status">
            <progress aria-label={words.progress} max={Math.max(1, now.head.ended.length)} value={done.length} />{' '}
            {words.done(done.length, now.head.ended.length)}
          </p>
          {now.state === 'running' && (
            <p className="soft small">
              {doing && `${doing} · `}
              {words.left(formatDuration(Math.max(1, secondsLeft(now.head.blobs, done.length, now.seconds))))}
            </p>
          )}
          {now.state !== 'running' && <Verdict of={now.report} />}
          <Rounds of={done} />
          {now.state !== 'running' && <Outcome key={now.report.ended_at} of={now.report} />}
        </>
      )}
    </>
  )
}

/** What the audit is about to do. */
function Plan({ of }: { of: ToAudit }) {
  const { data: head, error, refetch } = useQuery(headOf(of))
  if (error) return <Fault error={error} retry={() => void refetch()} />
  if (!head) return <p role="status">{words.reading}</p>
  if (head.ended.length === 0) return <Notice kind="wait">{words.none}</Notice>
  const blobs = head.blobs.reduce((sum, one) => sum + one, 0)
  return (
    <p>
      {words.plan(head.ended.length, blobs)} {words.takes(formatDuration(Math.max(1, secondsLeft(head.blobs))))}
    </p>
  )
}

function useAudit({ config, node, task, coordinates }: ToAudit) {
  const [now, setNow] = useState<State>({ state: 'idle' })
  const [done, setDone] = useState<Done[]>([])
  const [doing, setDoing] = useState('')
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])

  async function run(signal: AbortSignal) {
    const started = Date.now() / 1000
    const head = await readHead(node, config, task)
    const of: Audited = { task, head, chainId: config.chainId, contract: config.tasks, node: node.name }
    const found: Done[] = []
    const tell = (state: 'running' | 'stopped' | 'done') => {
      const ended = Date.now() / 1000
      const report = taskReport(
        of,
        found.map((one) => one.report),
        { started, ended },
        MADE_BY,
      )
      setDone([...found])
      setNow({ state, head, report, seconds: ended - started })
    }
    for (const round of head.ended) {
      if (signal.aborted) break
      tell('running')
      const show = (steps: readonly Step[]) => {
        const step = steps.findLast((one) => one.state === 'running')
        if (running.current?.signal === signal && step) setDoing(words.doing(round, step.title))
      }
      const checked = await verifyRound({ node, config, task, round, coordinates }, signal, show).catch(() => null)
      if (checked) found.push({ report: roundReport(of, round, checked, Date.now() / 1000), steps: checked.steps })
    }
    if (running.current?.signal === signal) tell(signal.aborted ? 'stopped' : 'done')
  }

  return {
    now,
    done,
    doing,
    start: () => {
      const stop = new AbortController()
      running.current = stop
      setDone([])
      setDoing('')
      setNow({ state: 'reading' })
      run(stop.signal).catch((error: unknown) => setNow({ state: 'failed', why: messageOf(error) }))
    },
    stop: () => running.current?.abort(),
  }
}

function Verdict({ of }: { of: Report }) {
  const those = (verdict: RoundReport['verdict']) =>
    of.rounds.filter((one) => one.verdict === verdict).map((one) => one.subject.round)
  const [failed, open] = [those('fails'), those('could not check')]
  if (of.rounds.length + of.left.length === 0) return <Notice kind="wait">{words.none}</Notice>
  return (
    <>
      {failed.length > 0 && <Notice kind="bad">{words.someFail(words.roundsOf(failed))}</Notice>}
      {open.length > 0 && <Notice kind="wait">{words.someOpen(words.roundsOf(open))}</Notice>}
      {of.left.length > 0 && <Notice kind="wait">{words.stopped(of.left.length)}</Notice>}
      {failed.length + open.length + of.left.length === 0 && (
        <Notice kind="good">{words.allHold(of.rounds.length)}</Notice>
      )}
    </>
  )
}

const MARKS = { holds: 'good', fails: 'bad', 'could not check': 'wait' } as const

function Rounds({ of }: { of: readonly Done[] }) {
  if (of.length === 0) return null
  return (
    <TableCard
      title={words.rounds}
      rows={of}
      keyOf={({ report }) => report.subject.round}
      columns={[
        {
          text: say.columns.round,
          of: ({ report: { subject } }) => <TaskLink task={subject.task} round={subject.round} />,
        },
        {
          text: words.verdict,
          of: ({ report: { verdict } }) => <span className={`badge ${MARKS[verdict]}`}>{words.verdicts[verdict]}</span>,
        },
        {
          text: words.steps,
          of: ({ steps }) => (
            <details>
              <summary>{words.steps}</summary>
              <Steps of={steps} />
            </details>
          ),
        },
      ]}
    />
  )
}

function Outcome({ of }: { of: Report }) {
  const hash = digest(of)
  const [signature, setSignature] = useState<SignedReport['signature']>(null)
  const message = messageFor(hash)
  return (
    <>
      <Card title={words.notTitle}>
        <ul>
          {of.not_proven.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      </Card>
      <Card title={words.report} means={words.reportMeans}>
        <p className="small wrap">
          <Time of={Date.parse(of.ended_at) / 1000} />, SHA-256 <code>{hash}</code>
        </p>
        {signature ? (
          <p>
            {words.signed} <Account of={signature.account} />
          </p>
        ) : (
          <OnDemand open={words.open}>
            <Sign message={message} signed={(account, given) => setSignature({ account, message, signature: given })} />
          </OnDemand>
        )}
        <div>
          <button type="button" onClick={() => download({ report: of, sha256: hash, signature })}>
            {words.download}
          </button>
        </div>
      </Card>
    </>
  )
}

function download(file: SignedReport) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([canonical(file)], { type: 'application/json' }))
  link.download = `consilium-audit-task-${file.report.task}-${file.report.ended_at.replaceAll(':', '')}.json`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
