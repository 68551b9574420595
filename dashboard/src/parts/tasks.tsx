import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import { say } from '../strings'
import { Account, Ago, PhaseBadge, Tokens } from './basics'
import { Table } from './table'

const { columns } = say.tasks

export function TaskTable({ items, empty }: { items: readonly Schemas['TaskSummary'][]; empty: string }) {
  return (
    <Table
      caption={say.tasks.title}
      rows={items}
      name={(task) => task.task}
      empty={empty}
      columns={[
        {
          name: columns.task,
          cell: (task) => (
            <Link to={`/tasks/${task.task}`}>
              {task.task}. <bdi>{task.name ?? say.tasks.unnamed(task.task)}</bdi>
            </Link>
          ),
        },
        { name: columns.phase, cell: (task) => <PhaseBadge phase={task.phase} /> },
        { name: columns.round, number: true, cell: (task) => say.tasks.ofRounds(task.round, task.rounds) },
        { name: columns.pool, number: true, cell: (task) => <Tokens of={task.pool} /> },
        { name: columns.operator, cell: (task) => <Account of={task.operator} /> },
        { name: columns.proposed, cell: (task) => <Ago of={task.proposed_at} /> },
      ]}
    />
  )
}
