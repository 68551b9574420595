/** The account to which a node's own stake and rewards are paid, and an announced change of it. */
import { formatTime } from '../lib/times'
import { withdrawal as words } from '../strings'
import { Account } from './basics'

export interface Payee {
  /** Null if the node itself is paid. */
  current: string | null
  next: string | null
  /** Start of `next`, in seconds since the epoch. */
  nextAt: number
}

export function PaidTo({ of: { current, next, nextAt } }: { of: Payee }) {
  return (
    <>
      {current ? <Account of={current} /> : words.itself}
      {next && (
        <>
          , {words.then(formatTime(nextAt))} <Account of={next} />
        </>
      )}
    </>
  )
}
