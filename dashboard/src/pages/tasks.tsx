import { useSearchParams } from 'react-router'
import type { Phase } from '../api/client'
import { tasks, type TaskQuery } from '../api/queries'
import { Listed } from '../parts/asked'
import { Page } from '../parts/basics'
import { TaskTable } from '../parts/tasks'
import { say } from '../strings'

const SORTS = {
  '-task': say.tasks.newest,
  task: say.tasks.oldest,
  '-pool': say.tasks.largest,
  pool: say.tasks.smallest,
} as const
type Sort = keyof typeof SORTS

function isSort(text: string | null): text is Sort {
  return text !== null && text in SORTS
}

function isPhase(text: string | null): text is Phase {
  return text !== null && text in say.phase
}

export default function Tasks() {
  const [search, setSearch] = useSearchParams()
  const phase = search.get('phase')
  const sort = search.get('sort')
  const text = search.get('text') ?? ''
  const query: TaskQuery = {
    limit: 25,
    sort: isSort(sort) ? sort : '-task',
    ...(isPhase(phase) ? { phase } : {}),
    ...(text ? { text } : {}),
  }
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
          const given = new FormData(event.currentTarget).get('text')
          change('text', typeof given === 'string' ? given.trim() : '')
        }}
      >
        <label>
          {say.tasks.phase}
          <select
            value={isPhase(phase) ? phase : ''}
            onChange={(event) => change('phase', event.target.value)}
          >
            <option value="">{say.tasks.every}</option>
            {Object.entries(say.phase)
              .filter(([name]) => name !== 'none')
              .map(([name, shown]) => (
                <option key={name} value={name}>
                  {shown}
                </option>
              ))}
          </select>
        </label>
        <label>
          {say.tasks.sort}
          <select value={query.sort ?? '-task'} onChange={(event) => change('sort', event.target.value)}>
            {Object.entries(SORTS).map(([name, shown]) => (
              <option key={name} value={name}>
                {shown}
              </option>
            ))}
          </select>
        </label>
        <label>
          {say.tasks.text}
          <input type="search" name="text" defaultValue={text} key={text} maxLength={100} />
        </label>
        <button type="submit">{say.tasks.apply}</button>
      </form>
      <section className="card" aria-label={say.tasks.title}>
        <Listed query={tasks(query)}>{(items) => <TaskTable items={items} empty={say.tasks.none} />}</Listed>
      </section>
    </Page>
  )
}
