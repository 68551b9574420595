import { useState } from 'react'
import { useNavigate, useSearchParams } from 'react-router'
import { tasks, type TaskQuery } from '../api/queries'
import { MOST_COMPARED } from '../lib/compared'
import { PHASES } from '../lib/enums'
import { Page } from '../parts/basics'
import { Choice } from '../parts/choice'
import { ListedTable } from '../parts/table'
import { ofTasks } from '../parts/tasks'
import * as say from '../strings'

const SORTS = [
  ['-task', say.tasks.newest],
  ['task', say.tasks.oldest],
  ['-pool', say.tasks.largest],
  ['pool', say.tasks.smallest],
] as const
const CHOICES = [['', say.tasks.every], ...PHASES.slice(1).map((phase) => [phase, say.phase[phase]] as const)] as const

export default function Tasks() {
  const navigate = useNavigate()
  const [chosen, setChosen] = useState<readonly number[]>([])
  const [search, setSearch] = useSearchParams()
  const phase = PHASES.find((one) => one === search.get('phase'))
  const sort = search.get('sort')
  const text = search.get('text') ?? ''
  const query = {
    limit: 25,
    sort: SORTS.find(([one]) => one === sort)?.[0] ?? '-task',
    ...(phase ? { phase } : {}),
    ...(text ? { text } : {}),
  } satisfies TaskQuery
  const change = (name: string, value: string) =>
    setSearch((before) => {
      if (value) before.set(name, value)
      else before.delete(name)
      return before
    })
  return (
    <Page title={say.tasks.title}>
      <form
        className="tools"
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          const entry = new FormData(event.currentTarget).get('text')
          change('text', typeof entry === 'string' ? entry.trim() : '')
        }}
      >
        <Choice name={say.tasks.phase} value={phase ?? ''} of={CHOICES} change={(chosen) => change('phase', chosen)} />
        <Choice name={say.tasks.sort} value={query.sort} of={SORTS} change={(chosen) => change('sort', chosen)} />
        <label>
          {say.tasks.text}
          <input type="search" name="text" defaultValue={text} key={text} maxLength={100} />
        </label>
        <button type="submit">{say.tasks.apply}</button>
      </form>
      <section className="card" aria-label={say.tasks.title}>
        <div className="tools">
          <button
            type="button"
            disabled={chosen.length < 2}
            onClick={() => void navigate(`/tasks/compare?of=${chosen.toSorted((one, other) => one - other).join()}`)}
          >
            {say.tasks.compare}
          </button>
          <span className="soft small">{say.tasks.compareMeans(MOST_COMPARED)}</span>
        </div>
        <ListedTable
          query={tasks(query)}
          {...ofTasks(say.tasks.none, { chosen, most: MOST_COMPARED, change: setChosen })}
        />
      </section>
    </Page>
  )
}
