import { fieldOf } from './fields'

/** A task and accounts (lower case), as events of the chain name them. */
export interface Concern {
  tasks: Set<number>
  accounts: Set<string>
}

export const nothing = (): Concern => ({ tasks: new Set(), accounts: new Set() })

/** Adds the task and all addresses among an event's values. */
export function addEvent(to: Concern, event: unknown) {
  const values = fieldOf(event, 'values')
  const task = fieldOf(values, 'taskId')
  if (typeof task === 'string') to.tasks.add(Number(task))
  for (const value of Object.values(values ?? {})) {
    if (typeof value === 'string' && /^0x[0-9a-f]{40}$/i.test(value)) to.accounts.add(value.toLowerCase())
  }
}

/** True if a query is about a task or an account of the events: `['task', 3, …]`, or an address anywhere in its key. */
export function isConcerned(queryKey: readonly unknown[], { tasks, accounts }: Concern): boolean {
  const [kind, number] = queryKey
  if (kind === 'task') return typeof number === 'number' && tasks.has(number)
  const key = JSON.stringify(queryKey).toLowerCase()
  return accounts.size > 0 && (key.match(/0x[0-9a-f]{40}/g) ?? []).some((one) => accounts.has(one))
}
