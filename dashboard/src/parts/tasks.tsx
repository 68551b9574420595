import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import { say } from '../strings'
import { Account, Ago, PhaseBadge } from './basics'
import { Table } from './table'

/** A link to a task by its number and name. */
export function NamedTask({ of }: { of: { task: number; name: string | null } }) {
  return (
    <Link className="named" to={`/tasks/${of.task}`}>
      <span>{of.task}.</span> <bdi className="clip">{of.name ?? say.tasks.unnamed(of.task)}</bdi>
    </Link>
  )
}

export function TaskTable({ items, empty }: { items: readonly Schemas['TaskSummary'][]; empty: string }) {
  const { columns } = say
  return (
    <Table
      caption={say.tasks.title}
      rows={items}
      keyOf={(task) => task.task}
      empty={empty}
      columns={[
        { text: columns.task, of: (task) => <NamedTask of={task} /> },
        { text: columns.phase, of: (task) => <PhaseBadge phase={task.phase} /> },
        { number: columns.round, of: (task) => say.tasks.ofRounds(task.round, task.rounds) },
        { tokens: columns.pool, of: (task) => task.pool },
        { text: columns.operator, of: (task) => <Account of={task.operator} /> },
        { text: columns.proposed, of: (task) => <Ago of={task.proposed_at} /> },
      ]}
    />
  )
}
