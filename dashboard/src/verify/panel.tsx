import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { BASE } from '../api/client'
import { config as configQuery, type Config } from '../api/config'
import { task as taskOf } from '../api/queries'
import { messageOf } from '../lib/errors'
import { Fault, Loading } from '../parts/basics'
import { Choice } from '../parts/choice'
import { useWallets } from '../parts/wallets'
import { say } from '../strings'
import { readRound, type Node } from './chain'
import { verdictOf, type Step, type Verdict } from './core'
import type { WorkerRequest, WorkerMessage } from './worker'

const words = say.verify
const BLOBS = `${BASE}/v1/artifacts/blobs`

interface Where {
  task: number
  round: number
}

interface RoundToVerify extends Where {
  config: Config
  /** The number of an update's coordinates, as the server says. */
  coordinates: number | null
}

export default function Panel({ task, round }: Where) {
  const { data: config, error, refetch } = useQuery(configQuery())
  const described = useQuery(taskOf(task))
  const coordinates = described.data?.spec?.coordinates ?? null
  if (config && !described.isPending)
    return <NodeChoice config={config} task={task} round={round} coordinates={coordinates} />
  return error ? <Fault error={error} retry={() => void refetch()} /> : <Loading />
}

function NodeChoice({ config, task, round, coordinates }: RoundToVerify) {
  const wallets = useWallets()
  const [chosen, choose] = useState<string>()
  const [attempt, setAttempt] = useState(0)
  const url = config.chainUrl
  const nodes: Node[] = [
    ...(url === null ? [] : [{ name: words.nodeOfSite(new URL(url).host), url }]),
    ...wallets.map(({ name, request }) => ({ name: words.nodeOfWallet(name), request })),
  ]
  const node = nodes.find((one) => one.name === chosen) ?? nodes[0]
  return (
    <>
      {nodes.length > 1 && (
        <div className="tools">
          <Choice
            name={words.node}
            value={node?.name ?? ''}
            of={nodes.map(({ name }) => [name, name] as const)}
            change={choose}
          />
        </div>
      )}
      {node ? (
        <Verifying
          key={`${node.name} ${attempt}`}
          node={node}
          config={config}
          task={task}
          round={round}
          coordinates={coordinates}
          again={() => setAttempt(attempt + 1)}
        />
      ) : (
        <p className="notice wait">{words.noNode}</p>
      )}
      <p className="soft small">
        {words.not} <code>{words.command(task, round)}</code>
      </p>
    </>
  )
}

function Verifying(props: RoundToVerify & { node: Node; again: () => void }) {
  const { steps, seconds } = useVerification(props)
  const verdict = seconds === null ? 'running' : verdictOf(steps)
  return (
    <>
      <ol className="steps" aria-label={words.steps}>
        {steps.map((step) => (
          <Line key={step.key} of={step} />
        ))}
      </ol>
      <p className={`notice ${NOTICE[verdict]}`} role="status">
        <strong>{words.verdict[verdict]}</strong>
        {seconds !== null && <span className="small">{words.took(seconds)}</span>}
      </p>
      {seconds !== null && (
        <div>
          <button type="button" onClick={props.again}>
            {words.again}
          </button>
        </div>
      )}
    </>
  )
}

const NOTICE: Record<Verdict, string> = { running: '', holds: 'good', partly: 'wait', unchecked: 'wait', fails: 'bad' }

function Line({ of }: { of: Step }) {
  return (
    <li data-state={of.state}>
      <span className="mark" aria-hidden="true">
        {words.mark[of.state]}
      </span>
      <div>
        {of.title}: <strong className="state">{words.state[of.state]}</strong>
        {of.lines.map((line) => (
          <p key={line} className="small soft wrap">
            {line}
          </p>
        ))}
      </div>
    </li>
  )
}

/** The steps so far, and the time that all took, in seconds; null until all are done. */
function useVerification({ node, config, task, round, coordinates }: RoundToVerify & { node: Node }) {
  const [steps, setSteps] = useState<Step[]>([READING])
  const [seconds, setSeconds] = useState<number | null>(null)
  // Each render makes a new object for the node, which its name identifies.
  const [firstNode] = useState(node)
  useEffect(() => {
    const started = performance.now()
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
    let isOver = false
    const put = (step: Step) =>
      setSteps((known) =>
        known.some((one) => one.key === step.key)
          ? known.map((one) => (one.key === step.key ? step : one))
          : [...known, step],
      )
    const finish = () => {
      if (!isOver) setSeconds((performance.now() - started) / 1000)
      isOver = true
    }
    const crash = (why: string) => {
      if (!isOver)
        setSteps((known) => [
          ...known.map((one): Step => (one.state === 'running' ? { ...one, state: 'skipped' } : one)),
          { key: 'crash', title: words.crash, state: 'skipped', lines: [why] },
        ])
      finish()
    }
    worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => {
      if ('step' in data) put(data.step)
      else if ('crashed' in data) crash(data.crashed)
      else finish()
    }
    worker.onerror = (event) => crash(event.message || words.noWorker)
    readRound(firstNode, config, task, round).then(
      ({ steps: read, record }) => {
        if (isOver) return
        setSteps(read)
        if (record) worker.postMessage({ record, blobs: BLOBS, coordinates } satisfies WorkerRequest)
        else finish()
      },
      (error: unknown) => crash(messageOf(error)),
    )
    return () => {
      isOver = true
      worker.terminate()
    }
  }, [firstNode, config, task, round, coordinates])
  return { steps, seconds }
}

const READING: Step = { key: 'reading', title: words.asking, state: 'running', lines: [] }
