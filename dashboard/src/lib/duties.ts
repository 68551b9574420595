/** The duties of a node in its tasks, with deadlines and the loss if it fails them (docs/protocol.md). */
import type { Role, Schemas } from '../api/client'
import { same } from './accounts'

export type Deed =
  | 'commit'
  | 'handOver'
  | 'unmask'
  | 'submitEvidence'
  | 'score'
  | 'reveal'
  | 'fixSurvivors'
  | 'publish'
  | 'nameCheaters'
  | 'discloseDecoys'

/** A node's part in a task. `round` is the task's present one; null before the first, and after the task's end. */
export interface Part {
  role: Role
  task: Pick<Schemas['Task'], 'task' | 'name' | 'phase' | 'round' | 'deadline' | 'pool' | 'terms' | 'participants'>
  round: Pick<Schemas['Round'], 'round' | 'cohorts' | 'commitments' | 'committee'> | null
}

export interface Duty {
  task: number
  name: string | null
  round: number
  role: Role
  deed: Deed
  /** Seconds since the epoch. */
  by: number
  /** True if it is too late. The slash comes when somebody ends the phase. */
  isOverdue: boolean
  /** The slash: its part of the bond in basis points, and its amount in the smallest unit; null without one. */
  slash: { bps: number; amount: bigint } | null
}

interface Due {
  deed: Deed
  by: number
  slash: Duty['slash']
}

const BASIS_POINTS = 10_000n

/** The duties by deadline, the nearest first. `now` in seconds since the epoch. */
export function dutiesOf(parts: readonly Part[], account: string, now: number): Duty[] {
  return parts
    .flatMap((part) => {
      const due = dueOf(part, account, now)
      const { task, name, round } = part.task
      return due ? [{ ...due, task, name, round, role: part.role, isOverdue: due.by < now }] : []
    })
    .toSorted((one, other) => one.by - other.by || one.task - other.task)
}

function dueOf(part: Part, account: string, now: number): Due | null {
  if (part.role === 'hospital') return hospitalsDue(part, account, now)
  return part.role === 'voter' ? votersDue(part, account) : aggregatorsDue(part, account)
}

/** The account's entry in the list of a task's participants. */
export function memberOf({ role, task }: Part, account: string): Schemas['Member'] | undefined {
  return task.participants.find((one) => one.role === role && same(one.account, account))
}

/** A slash of so many basis points of the bond, but no more than `most` and than the rest of the bond. */
function slashOf(part: Part, account: string, bps: number, most?: bigint): Duty['slash'] {
  const { terms } = part.task
  const bond = BigInt(terms[`${part.role}_bond`])
  const left = BigInt(memberOf(part, account)?.bond ?? 0)
  const full = (bond * BigInt(bps)) / BASIS_POINTS
  return { bps, amount: [full, left, most ?? full].reduce((least, one) => (one < least ? one : least)) }
}

function hospitalsDue(part: Part, account: string, now: number): Due | null {
  const { task, round } = part
  const { terms, deadline } = task
  const at = memberOf(part, account)?.position
  const cohort = round?.cohorts.find((one) => at !== undefined && one.members.includes(at))
  if (!round || !cohort || at === undefined) return null // absent, or assigned to no cohort
  const committed = round.commitments.filter((one) => one.position !== null && cohort.members.includes(one.position))
  const hasCommitted = committed.some((one) => one.position === at)
  const isIn = cohort.survivors.includes(at)
  switch (task.phase) {
    case 'committing':
      return hasCommitted || deadline === 0 ? null : { deed: 'commit', by: deadline, slash: null }
    case 'uploading': {
      // A cohort below its minimum size is dropped, and nobody in it is slashed.
      if (!hasCommitted || committed.length < terms.min_cohort_size) return null
      return { deed: 'handOver', by: deadline, slash: withheld(part, account) }
    }
    case 'publishing':
      if (!terms.masked || task.round === 0 || !isIn || cohort.fate !== 'open') return null
      return { deed: 'unmask', by: deadline, slash: null }
    case 'disputing': {
      const by = deadline - terms.publish_window // in the last third the aggregator names the cheater
      if (cohort.fate !== 'accused' || !isIn || by < now) return null
      return { deed: 'submitEvidence', by, slash: slashOf(part, account, terms.harmful_slash_bps) }
    }
    default:
      return null
  }
}

/** The slash for a withheld upload: no more than the aggregator's fee for an average hospital (`Slashes.sol`). */
function withheld(part: Part, account: string): Duty['slash'] {
  const { terms, pool } = part.task
  const fee = ((BigInt(pool) / BigInt(terms.rounds)) * BigInt(terms.aggregator_share_bps)) / BASIS_POINTS
  return slashOf(part, account, terms.withheld_slash_bps, fee / BigInt(terms.max_hospitals))
}

function votersDue(part: Part, account: string): Due | null {
  const { task, round } = part
  const ballot = round?.committee.ballots.find((one) => same(one.voter, account))
  if (!round) return null
  // Only the voter's own key can tell if it has a seat.
  if (task.phase === 'scoring' && !ballot) return { deed: 'score', by: task.deadline, slash: null }
  if (task.phase === 'revealing' && ballot?.commitment && ballot.verdict === 'not_revealed') {
    return {
      deed: 'reveal',
      by: task.deadline,
      slash: slashOf(part, account, task.terms.not_revealed_slash_bps),
    }
  }
  return null
}

const AGGREGATORS: Partial<Record<Schemas['Task']['phase'], Deed>> = {
  uploading: 'fixSurvivors',
  publishing: 'publish',
  disputing: 'nameCheaters',
  disclosing: 'discloseDecoys',
}

function aggregatorsDue(part: Part, account: string): Due | null {
  const { task } = part
  const deed = AGGREGATORS[task.phase]
  if (!deed) return null
  return { deed, by: task.deadline, slash: slashOf(part, account, task.terms.not_published_slash_bps) }
}
