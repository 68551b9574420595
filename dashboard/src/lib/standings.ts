/** An arena's leaderboard and curves, from its ranks by round. */
import type { Schemas } from '../api/client'

type Round = Pick<Schemas['ArenaRound'], 'round' | 'outcome'> & {
  standings: readonly Pick<Schemas['Standing'], 'hospital' | 'median' | 'rank' | 'reward'>[]
}

export interface Leader {
  hospital: string
  /** Rounds in which its model became the next base, and those in which it had a rank. */
  firsts: number
  ranked: number
  /** In the latest settled round. */
  rank: number | null
  median: number | null
  earned: bigint
}

const settledOf = (rounds: readonly Round[]) =>
  rounds.filter((one) => one.outcome === 'settled').toSorted((one, other) => one.round - other.round)

/** All trainers, those that earned most first. */
export function leadersOf(rounds: readonly Round[]): Leader[] {
  const found = new Map<string, Leader>()
  for (const { hospital } of rounds.flatMap((one) => one.standings))
    found.set(hospital, { hospital, firsts: 0, ranked: 0, rank: null, median: null, earned: 0n })
  for (const { standings } of settledOf(rounds)) {
    const present = new Map(standings.map((one) => [one.hospital, one]))
    for (const leader of found.values()) {
      const own = present.get(leader.hospital)
      leader.rank = own?.rank ?? null
      leader.median = own?.median ?? null
      leader.firsts += own?.rank === 1 ? 1 : 0
      leader.ranked += own?.rank ? 1 : 0
      leader.earned += BigInt(own?.reward ?? 0)
    }
  }
  return [...found.values()].toSorted(
    (one, other) =>
      compare(other.earned, one.earned) || other.firsts - one.firsts || compare(one.hospital, other.hospital),
  )
}

const compare = <T extends bigint | string>(one: T, other: T) => (one < other ? -1 : one > other ? 1 : 0)

/** Medians by settled round, oldest first: a trainer's own, and the best. Null without a median. */
export function curveOf(rounds: readonly Round[], hospital: string) {
  const settled = settledOf(rounds)
  const medians = (one: Round) => one.standings.flatMap(({ median }) => (median === null ? [] : [median]))
  return {
    rounds: settled.map((one) => one.round),
    own: settled.map((one) => one.standings.find((standing) => standing.hospital === hospital)?.median ?? null),
    best: settled.map((one) => (medians(one).length ? Math.max(...medians(one)) : null)),
  }
}

/** The round that is being played, and the trainers in it; null between rounds. */
export function openOf(rounds: readonly Round[]): { round: number; trainers: number } | null {
  const open = rounds.find((one) => one.outcome === 'pending')
  return open ? { round: open.round, trainers: open.standings.length } : null
}
