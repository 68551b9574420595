/** Which events of the chain cost money, and the words for them. The server's are in `telling/words.py`. */
import * as say from '../strings'
import { told as words } from '../strings/told'
import { shortened } from './accounts'
import { formatBps, formatTokens } from './amounts'
import { fieldOf } from './fields'
import { formatTime } from './times'
import type { WatchList } from './watching'

export interface Told {
  /** The same for the same event. */
  id: string
  text: string
  task: number | null
  round: number | null
  /** The one that the event names. */
  account: string | null
}

/** An event of the stream; null if it costs nobody money. */
export function toldOf(event: unknown): Told | null {
  const text = textOf(event)
  if (text === null) return null
  const [task, round, account] = ['task', 'round', 'account'].map((name) => fieldOf(event, name) ?? null)
  return {
    id: `${String(fieldOf(event, 'transaction'))}-${String(fieldOf(event, 'log_index'))}`,
    text,
    task: typeof task === 'number' ? task : null,
    round: typeof round === 'number' ? round : null,
    account: typeof account === 'string' ? account : null,
  }
}

export function isWatched({ task, account }: Told, list: WatchList): boolean {
  return (
    (task !== null && list.tasks.includes(task)) || (account !== null && list.nodes.includes(account.toLowerCase()))
  )
}

/** The round or task in words; else the platform. */
export function whereOf({ task, round }: Told): string {
  if (task === null) return say.name
  return round === null ? say.tasks.unnamed(task) : say.round.title(round, task)
}

function textOf(event: unknown): string | null {
  const of = (name: string) => {
    const value = fieldOf(fieldOf(event, 'values'), name)
    return typeof value === 'string' ? value : '0'
  }
  const account = shortened(String(fieldOf(event, 'account')))
  switch (fieldOf(event, 'name')) {
    case 'Slashed':
      return words.of.slash(account, formatTokens(BigInt(of('amount'))), named(say.reason, of('reason')))
    case 'HospitalAbsent':
      return words.of.missed(account)
    case 'RoundVoided':
      return words.of.void(named(say.voidReason, of('reason')))
    case 'RoundSettled': {
      const medians = fieldOf(fieldOf(event, 'values'), 'medians')
      const all = Array.isArray(medians) ? medians.length : 0
      const accepted = BigInt(of('acceptedCohorts')).toString(2).replaceAll('0', '').length
      return accepted < all ? words.of.rejected(all - accepted, all) : null
    }
    case 'TaskStopped':
      return words.of.stopped
    case 'TaskEnded':
      return words.of.ended
    case 'PoolWiped':
      return words.of.wiped(account)
    case 'WithdrawalAddressSet':
      return words.of.address(account, shortened(of('withdrawalAddress')), formatTime(Number(of('effectiveAt'))))
    case 'CommissionSet': {
      const at = Number(of('effectiveAt'))
      const isRaise = at > Number(fieldOf(event, 'time'))
      return isRaise ? words.of.commission(account, formatBps(Number(of('commissionBps'))), formatTime(at)) : null
    }
    default:
      return null
  }
}

/** The words for a number of the contract's enumeration: texts are in its order. */
function named(texts: Record<string, string>, number: string): string {
  return Object.values(texts)[Number(number)] ?? ''
}
