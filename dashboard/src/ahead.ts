/** What the page that is opened first will ask for, asked for while its code is on its way. */
import { noop, type QueryClient } from '@tanstack/react-query'
import { round as roundOf, rounds as roundsOf, task as taskOf } from './api/queries'

/** `hash`: of the page's address, as `#/tasks/3/rounds/1`. What fails the page asks for again, and shows why. */
export function askAhead(client: QueryClient, hash: string) {
  const [, task, round] = /^#\/tasks\/(\d{1,9})(?:\/rounds\/(\d{1,9}))?\/?$/.exec(hash) ?? []
  if (task === undefined) return
  if (round !== undefined) {
    client.query(roundOf(Number(task), Number(round))).catch(noop)
    return
  }
  client.query(taskOf(Number(task))).catch(noop)
  client.infiniteQuery(roundsOf(Number(task))).catch(noop)
  import('./parts/chart').catch(noop)
}
