/** Notifications of this browser, for events that concern the watch list. Every tab hears every event: the same `tag` in all
 * of them makes it one notification.
 */
import { watchList } from './watching'

export type Allowed = 'unsupported' | NotificationPermission

export function allowed(): Allowed {
  return 'Notification' in window && window.isSecureContext ? Notification.permission : 'unsupported'
}

export async function notify(event: unknown): Promise<void> {
  const list = watchList()
  if (!list.isOn || allowed() !== 'granted') return
  const { isWatched, toldOf } = await import('./told')
  const told = toldOf(event)
  if (!told || !isWatched(told, list)) return
  const { name, tasks, round: rounds } = await import('../strings')
  const { id, text, task, round, account } = told
  const where = task === null ? name : round === null ? tasks.unnamed(task) : rounds.title(round, task)
  let shown: Notification
  try {
    shown = new Notification(where, { body: text, tag: id, icon: './icon.svg' })
  } catch {
    return // on phones only a service worker may show one
  }
  shown.onclick = () => {
    window.focus()
    location.hash = task === null ? `/accounts/${account ?? ''}` : `/tasks/${task}`
    shown.close()
  }
}
