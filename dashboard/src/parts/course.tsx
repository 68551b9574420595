/** A task's course: joining, rounds with their outcomes, the phases of the present round, and the end. */
import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import { courseOf, phasesOf, type Step } from '../lib/timeline'
import * as say from '../strings'
import { timeline as words } from '../strings/timeline'
import { Ago, Card, Countdown, OutcomeBadge } from './basics'

interface Of {
  task: Schemas['Task']
  rounds: readonly Schemas['RoundSummary'][]
}

export function Course({ task, rounds }: Of) {
  return (
    <Card title={words.title} means={say.phaseMeans[task.phase]}>
      <ol className="course">
        {courseOf(task, rounds.length > 0).map((step) => (
          <li
            key={nameOf(step)}
            data-state={step.state}
            {...(step.state === 'now' ? { 'aria-current': 'step' as const } : {})}
          >
            <Stop of={step} task={task} rounds={rounds} />
          </li>
        ))}
      </ol>
    </Card>
  )
}

function nameOf(step: Step): string {
  if (step.kind === 'rounds') return words.rounds(step.from, step.to)
  return step.kind === 'joining' ? words.joining : words.end
}

function Stop({ of: step, task, rounds }: Of & { of: Step }) {
  const only =
    step.kind === 'rounds' && step.from === step.to ? rounds.find((one) => one.round === step.from) : undefined
  return (
    <>
      {only ? <Link to={`/tasks/${task.task}/rounds/${only.round}`}>{nameOf(step)}</Link> : <b>{nameOf(step)}</b>}
      <span className="soft small">
        {only?.ended_at ? (
          <>
            <OutcomeBadge of={only} /> <Ago of={only.ended_at} />
          </>
        ) : (
          words.state[step.state]
        )}
        {step.state === 'now' && task.phase !== 'ended' && !only && (
          <>
            {' '}
            <Countdown to={task.deadline} phase={task.phase} />
          </>
        )}
      </span>
      {step.state === 'now' && only && <Phases task={task} />}
    </>
  )
}

function Phases({ task }: { task: Schemas['Task'] }) {
  return (
    <ol className="phases" aria-label={words.phases(words.round(task.round))}>
      {phasesOf(task.round, task.phase, task.terms.decoys).map(({ phase, state }) => (
        <li key={phase} data-state={state} {...(state === 'now' ? { 'aria-current': 'step' as const } : {})}>
          {say.phase[phase]}
          {state === 'now' && (
            <span className="small">
              {' '}
              <Countdown to={task.deadline} phase={phase} />
            </span>
          )}
          <span className="visually-hidden">, {words.state[state]}</span>
        </li>
      ))}
    </ol>
  )
}
