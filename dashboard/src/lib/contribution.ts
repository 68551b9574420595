/** The part that each member has in a task: shares of the accepted weight, and pay by round. */
import type { Schemas } from '../api/client'

type Member = Pick<Schemas['Member'], 'account' | 'role' | 'weight' | 'accepted'>
type Reward = Pick<Schemas['Payment'], 'account' | 'role' | 'round' | 'amount'>

const keyOf = ({ account, role }: { account: string; role: string | null }) => `${role ?? ''} ${account}`

/** A hospital's share of all weight in accepted sums, from 0 to 1; null for others, and before the first such sum. */
export function shareOf(member: Member, all: readonly Member[]): number | null {
  const whole = all.reduce((sum, one) => sum + one.weight * one.accepted, 0)
  return member.role === 'hospital' && whole > 0 ? (member.weight * member.accepted) / whole : null
}

/**
 * Pay by round, the latest first, `most` rounds at most. `rewards`: latest first. `isWhole`: false if the list ends
 * before the task's first reward, so that its last round may be cut.
 */
export function payByRound(rewards: readonly Reward[], isWhole: boolean, most: number) {
  const rounds = [...new Set(rewards.map((one) => one.round ?? 0))]
  const shown = (isWhole ? rounds : rounds.slice(0, -1)).slice(0, most)
  return shown.map((round) => {
    const paid = new Map<string, bigint>()
    for (const one of rewards)
      if (one.round === round) paid.set(keyOf(one), (paid.get(keyOf(one)) ?? 0n) + BigInt(one.amount))
    return { round, of: (member: Pick<Member, 'account' | 'role'>) => paid.get(keyOf(member)) ?? 0n }
  })
}
