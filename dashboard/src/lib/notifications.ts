/** Notifications of this browser, for events that concern the watch list. Every tab hears every event: the same `tag` in all
 * of them makes it one notification.
 */
import { watchList } from './watching'

export type Allowed = 'unsupported' | NotificationPermission

export function allowed(): Allowed {
  return 'Notification' in window && window.isSecureContext ? Notification.permission : 'unsupported'
}

/** Null where a page cannot show one, as on phones, where only a service worker may. */
function shown(title: string, options: NotificationOptions): Notification | null {
  try {
    return new Notification(title, { icon: './icon.svg', ...options })
  } catch {
    return null
  }
}

export const canShow = (title: string, body: string) => shown(title, { body }) !== null

export async function notify(event: unknown): Promise<void> {
  const list = watchList()
  if (!list.isOn || allowed() !== 'granted') return
  const { isWatched, toldOf, whereOf } = await import('./told')
  const told = toldOf(event)
  if (!told || !isWatched(told, list)) return
  const { id, text, task, account } = told
  const notification = shown(whereOf(told), { body: text, tag: id })
  if (!notification) return
  notification.onclick = () => {
    window.focus()
    location.hash = task === null ? `/accounts/${account ?? ''}` : `/tasks/${task}`
    notification.close()
  }
}
