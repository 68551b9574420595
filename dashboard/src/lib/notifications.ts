/** Notifications of this browser, for events that concern the watch list. Every tab hears every event: the same `tag` in all
 * of them makes it one notification.
 */
import { watchList } from './watching'

export type Allowed = 'unsupported' | NotificationPermission

export function allowed(): Allowed {
  return 'Notification' in window && window.isSecureContext ? Notification.permission : 'unsupported'
}

/** Shows one; false where a page cannot, as on phones, where only a service worker may. */
export function canShow(title: string, body: string): boolean {
  try {
    new Notification(title, { body, icon: './icon.svg' })
    return true
  } catch {
    return false
  }
}

export async function notify(event: unknown): Promise<void> {
  const list = watchList()
  if (!list.isOn || allowed() !== 'granted') return
  const { isWatched, toldOf, whereOf } = await import('./told')
  const told = toldOf(event)
  if (!told || !isWatched(told, list)) return
  const { id, text, task, account } = told
  let shown: Notification
  try {
    shown = new Notification(whereOf(told), { body: text, tag: id, icon: './icon.svg' })
  } catch {
    return // on phones only a service worker may show one
  }
  shown.onclick = () => {
    window.focus()
    location.hash = task === null ? `/accounts/${account ?? ''}` : `/tasks/${task}`
    shown.close()
  }
}
