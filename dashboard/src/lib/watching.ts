/** The watch list of this browser. All tabs have the same. */
import { useSyncExternalStore } from 'react'
import { isAccount } from './accounts'
import { fieldOf } from './fields'

/** `nodes`: addresses in lower case. `isOn`: notifications are wanted. */
export interface WatchList {
  tasks: readonly number[]
  nodes: readonly string[]
  isOn: boolean
}

export const MOST = 50 // tasks, and nodes: as many as the server takes
const KEY = 'watch'
const CHANGED = 'consilium-watch'

let known: { raw: string | null; list: WatchList } | undefined

export function watchList(): WatchList {
  const raw = stored()
  if (known?.raw !== raw) known = { raw, list: parsed(raw) }
  return known.list
}

/** True if it is kept: not if the list is full, or the browser keeps nothing for this site. */
export function keepList(changes: Partial<WatchList>): boolean {
  const next = { ...watchList(), ...changes }
  if (next.tasks.length > MOST || next.nodes.length > MOST) return false
  try {
    localStorage.setItem(KEY, JSON.stringify(next))
  } catch {
    return false
  }
  window.dispatchEvent(new Event(CHANGED))
  return true
}

export function useWatchList(): WatchList {
  return useSyncExternalStore(subscribe, watchList)
}

function subscribe(hear: () => void): () => void {
  window.addEventListener('storage', hear)
  window.addEventListener(CHANGED, hear)
  return () => {
    window.removeEventListener('storage', hear)
    window.removeEventListener(CHANGED, hear)
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}

/** What another program wrote is left out. */
export function parsed(raw: string | null): WatchList {
  let read: unknown = null
  try {
    read = JSON.parse(raw ?? 'null')
  } catch {
    return { tasks: [], nodes: [], isOn: false }
  }
  const all = (name: string): unknown[] => {
    const found = fieldOf(read, name)
    return Array.isArray(found) ? found.slice(0, MOST) : []
  }
  const tasks = all('tasks').filter((one) => typeof one === 'number' && Number.isSafeInteger(one) && one > 0)
  const nodes = all('nodes').filter((one) => typeof one === 'string' && isAccount(one))
  return {
    tasks: [...new Set(tasks as number[])],
    nodes: [...new Set((nodes as string[]).map((one) => one.toLowerCase()))],
    isOn: fieldOf(read, 'isOn') === true,
  }
}
