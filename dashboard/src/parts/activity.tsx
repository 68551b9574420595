/** The lower part of the overview: the tasks that run, then money, then the latest tasks. */
import { Link } from 'react-router'
import type { Schemas } from '../api/client'
import { formatTokens } from '../lib/amounts'
import { ROLES } from '../lib/enums'
import * as say from '../strings'
import { Card, Countdown, Figure, PhaseBadge, Tokens } from './basics'
import { Table, TableCard } from './table'
import { NamedTask, ofTasks } from './tasks'

const words = say.overview
const { columns } = say
const SHOWN = 10 // of the latest tasks
type Tasks = readonly Schemas['TaskSummary'][]

export default function Activity({ of, tasks }: { of: Schemas['Network']; tasks: Tasks }) {
  return (
    <>
      <Running of={of} tasks={tasks.filter(({ phase }) => phase !== 'ended')} />
      <Money of={of} />
      <TableCard
        title={words.byRole}
        rows={ROLES}
        keyOf={(role) => role}
        columns={[
          { text: columns.role, of: (role) => <Link to={`/nodes?role=${role}`}>{say.roles[role]}</Link> },
          { number: columns.nodes, of: (role) => of.stake[role]?.nodes ?? 0 },
          { tokens: words.staked, of: (role) => of.stake[role]?.assets },
          { tokens: columns.locked, of: (role) => of.stake[role]?.locked },
          { tokens: words.rewarded, of: (role) => of.stake[role]?.rewarded },
          { tokens: words.burnt, of: (role) => of.stake[role]?.burnt },
        ]}
      />
      <Card title={words.recent}>
        <Table rows={tasks.slice(0, SHOWN)} {...ofTasks(words.noTasks)} />
        <p>
          <Link to="/tasks">{words.allTasks}</Link>
        </p>
      </Card>
    </>
  )
}

function Running({ of, tasks }: { of: Schemas['Network']; tasks: Tasks }) {
  const all = Object.values(of.tasks).reduce((sum, count) => sum + count, 0)
  return (
    <Card title={words.activity}>
      <dl className="figures">
        <Figure name={words.tasks} value={all} beside={words.running(all - (of.tasks.ended ?? 0))} />
        <Figure name={words.rounds} value={of.rounds.settled ?? 0} beside={words.voids(of.rounds.void ?? 0)} />
        <Figure name={words.delegators} value={of.delegators} />
      </dl>
      <Table
        caption={words.runningTasks}
        rows={tasks}
        keyOf={(task) => task.task}
        empty={words.noneRuns}
        columns={[
          { text: columns.task, of: (task) => <NamedTask of={task} /> },
          { text: columns.phase, of: ({ phase }) => <PhaseBadge phase={phase} /> },
          { text: say.task.deadline, of: ({ deadline, phase }) => <Countdown to={deadline} phase={phase} /> },
          { number: columns.round, of: (task) => say.tasks.ofRounds(task.round, task.rounds) },
        ]}
      />
    </Card>
  )
}

function Money({ of }: { of: Schemas['Network'] }) {
  const total = (field: 'assets' | 'locked' | 'rewarded' | 'burnt') =>
    ROLES.reduce((sum, role) => sum + BigInt(of.stake[role]?.[field] ?? 0), 0n)
  return (
    <Card title={words.money}>
      <dl className="figures">
        <Figure name={words.pools} value={<Tokens of={of.pools} />} />
        <Figure
          name={words.staked}
          value={<Tokens of={total('assets')} />}
          beside={words.locked(formatTokens(total('locked')))}
        />
        <Figure name={words.rewarded} value={<Tokens of={total('rewarded')} />} />
        <Figure name={words.burnt} value={<Tokens of={total('burnt')} />} />
      </dl>
    </Card>
  )
}
