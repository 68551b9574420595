import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { task as taskOf } from '../api/queries'
import { Loading } from '../parts/basics'
import * as say from '../strings'
import { verdictOf, type Step, type Verdict } from './core'
import { WithNode } from './node'
import { READING, verifyRound, type RoundToVerify, type Where } from './session'

const words = say.verify

export default function Panel({ task, round }: Where) {
  const described = useQuery(taskOf(task))
  const [attempt, setAttempt] = useState(0)
  const coordinates = described.data?.spec?.coordinates ?? null
  if (described.isPending) return <Loading />
  return (
    <>
      <WithNode>
        {(config, node) => (
          <Verifying
            key={`${node.name} ${attempt}`}
            {...{ config, node, task, round, coordinates }}
            again={() => setAttempt(attempt + 1)}
          />
        )}
      </WithNode>
      <p className="soft small">
        {words.not} <code>{words.command(task, round)}</code>
      </p>
    </>
  )
}

function Verifying({ again, ...of }: RoundToVerify & { again: () => void }) {
  const { steps, seconds } = useVerification(of)
  const verdict = seconds === null ? 'running' : verdictOf(steps)
  return (
    <>
      <Steps of={steps} />
      <p className={`notice ${NOTICE[verdict]}`} role="status">
        <strong>{words.verdict[verdict]}</strong>
        {seconds !== null && <span className="small">{words.took(seconds)}</span>}
      </p>
      {seconds !== null && (
        <div>
          <button type="button" onClick={again}>
            {words.again}
          </button>
        </div>
      )}
    </>
  )
}

const NOTICE: Record<Verdict, string> = { running: '', holds: 'good', partly: 'wait', unchecked: 'wait', fails: 'bad' }

export function Steps({ of }: { of: readonly Step[] }) {
  return (
    <ol className="steps" aria-label={words.steps}>
      {of.map((step) => (
        <Line key={step.key} of={step} />
      ))}
    </ol>
  )
}

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
function useVerification(of: RoundToVerify) {
  const [steps, setSteps] = useState<Step[]>([READING])
  const [seconds, setSeconds] = useState<number | null>(null)
  const [first] = useState(of) // Each render makes a new object for the node, which its name identifies.
  useEffect(() => {
    const started = performance.now()
    const stop = new AbortController()
    verifyRound(first, stop.signal, setSteps).then(
      () => setSeconds((performance.now() - started) / 1000),
      () => undefined, // the page was left
    )
    return () => stop.abort()
  }, [first])
  return { steps, seconds }
}
