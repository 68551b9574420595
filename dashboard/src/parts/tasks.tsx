import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import * as say from '../strings'
import { Account, Ago, PhaseBadge } from './basics'
import type { Shape } from './table'

/** A link to a task by its number and name. */
export function NamedTask({ of }: { of: { task: number; name: string | null } }) {
  return (
    <Link className="named" to={`/tasks/${of.task}`}>
      <span>{of.task}.</span> <bdi className="clip">{of.name ?? say.tasks.unnamed(of.task)}</bdi>
    </Link>
  )
}

interface Choosing {
  chosen: readonly number[]
  most: number
  change: (chosen: readonly number[]) => void
}

/** A table of tasks. `choosing`: a box in each row, for the tasks to compare. */
export function ofTasks(empty: string, choosing?: Choosing): Shape<Schemas['TaskSummary']> & { caption: string } {
  const { columns } = say
  return {
    caption: say.tasks.title,
    keyOf: ({ task }) => task,
    empty,
    columns: [
      ...(choosing
        ? [{ text: say.tasks.compare, of: ({ task }: { task: number }) => <Chosen task={task} {...choosing} /> }]
        : []),
      { text: columns.task, of: (task) => <NamedTask of={task} /> },
      { text: columns.phase, of: (task) => <PhaseBadge phase={task.phase} /> },
      { number: columns.round, of: (task) => say.tasks.ofRounds(task.round, task.rounds) },
      { tokens: columns.pool, of: (task) => task.pool },
      { text: columns.operator, of: (task) => <Account of={task.operator} /> },
      { text: columns.proposed, of: (task) => <Ago of={task.proposed_at} /> },
    ],
  }
}

function Chosen({ task, chosen, most, change }: Choosing & { task: number }) {
  const isChosen = chosen.includes(task)
  return (
    <input
      type="checkbox"
      aria-label={say.tasks.compareTask(task)}
      checked={isChosen}
      disabled={!isChosen && chosen.length >= most}
      onChange={() => change(isChosen ? chosen.filter((one) => one !== task) : [...chosen, task])}
    />
  )
}
