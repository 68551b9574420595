/** Texts about a round's payouts: its outcome in a sentence, and the reason why an account got nothing. */
import { reason as reasons } from './general'

const plural = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`

export const payouts = {
  title: 'Paid and not paid',
  means: 'From the contract’s events and the task’s terms. The contract’s call “explain” gives the same reasons.',
  contribution: 'Contribution',
  contributionMeans: (rounds: number) =>
    `A hospital’s share is its weight times its rounds in accepted sums, of all hospitals’ together. Pay by round is of the latest ${rounds === 1 ? 'round' : `${rounds} rounds`} that paid.`,
  share: 'Share',
  ofRound: (round: number) => `Round ${round}`,
  settled: (accepted: number, cohorts: number, paid: string) =>
    `This round is settled: ${accepted} of ${plural(cohorts, 'cohort was', 'cohorts were')} accepted, and ${paid}.`,
  paid: (parties: string, amount: string) => `${parties} were paid ${amount} together`,
  nothing: 'it paid no rewards',
  parties: (hospitals: number, voters: number, aggregator: number) =>
    new Intl.ListFormat('en-GB').format([
      ...(hospitals ? [plural(hospitals, 'hospital', 'hospitals')] : []),
      ...(voters ? [plural(voters, 'voter', 'voters')] : []),
      ...(aggregator ? ['the aggregator'] : []),
    ]),
  statistics: 'This round is settled: it added up statistics to scale the data, so it pays no rewards.',
  void: (why: string) => `This round is void: ${why}. It pays no rewards.`,
  running: (phase: string) => `This round is not over: ${phase} The contract pays at its end.`,
  more: (n: number) => `${n} more`,
  /** After the account: "Hospital 0x… ". */
  wasNotPaid: (round: number) => ` was not paid in round ${round}: `,
  lastRound: (round: number) => `Round ${round}, the latest that is over`,
  why: {
    sat_out: () => 'it was in no cohort of this round.',
    not_committed: () => 'it committed to no update.',
    not_in_sum: () => 'its update is in no published sum.',
    harmful: (median: string, floor: string) =>
      `it was slashed, because its cohort’s median ${median} is below the limit ${floor}.`,
    rejected: (median: string, floor: string) => `its cohort’s median ${median} is below the threshold ${floor}.`,
    no_improvement: (median: string) => `its cohort’s median ${median} is accepted, but is no improvement.`,
    no_rank: (median: string, floor: string) => `its median ${median} is below ${floor}, the least that has a rank.`,
    no_seat: () => 'it was not drawn into the committee.',
    stood_down: () => 'it stood down from the committee.',
    not_revealed: () => 'it did not reveal its scores.',
    does_not_match: () => 'it said that the published sums do not match, and most voters disagreed.',
    invalid: () => 'it called a sum an invalid model, and most voters disagreed.',
    far: (score: string, reach: string, median: string) =>
      `its score ${score} is more than ${reach} from the median ${median}.`,
    untested: () => 'no sum differed enough from its decoy to test the committee.',
    failed_decoy: (decoy: string, score: string) =>
      `it was slashed, because it scored a sign-flipped sum with ${decoy} and the true one with ${score}.`,
    late: () => 'it acted in a grace period, which costs it the round’s fee.',
    slashed: (reason: keyof typeof reasons) =>
      `it was slashed, because ${reason === 'mismatched' ? '' : 'it '}${reasons[reason]}.`,
  },
}
