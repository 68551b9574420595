/** Members of a task that a round did not pay, each with the reason. The rules are those of `Verdicts.sol`. */
import type { Schemas } from '../api/client'
import * as say from '../strings'
import { payouts } from '../strings/payouts'
import { formatScore, formatSize, formatTokens } from './amounts'
import { ROLES } from './enums'

type Round = Schemas['Round']
type Member = Schemas['Member']
type Terms = Pick<
  Schemas['Terms'],
  'accept_floor' | 'harmful_below' | 'rank_decay_bps' | 'rank_floor' | 'tolerance_abs' | 'tolerance_bps'
>
interface Joined {
  terms: Terms
  participants: readonly Member[]
}

export interface Unpaid {
  member: Member
  why: string
}

const words = payouts.why

/** Empty for a round that is not over. If a whole round pays nobody, only those with a reason of their own. */
export function unpaidOf(round: Round, { terms, participants }: Joined): Unpaid[] {
  if (round.outcome === 'pending') return []
  return participants.flatMap((member) => {
    const own = round.payments.filter((one) => one.account === member.account && one.role === member.role)
    if (own.some((one) => one.kind === 'reward')) return []
    const slash = own.find((one) => one.kind === 'slash')
    const why = slash?.reason ? slashed(slash.reason, round, member, terms) : unpaid(round, member, terms)
    return why ? [{ member, why }] : []
  })
}

/** A figure says more than the slash's reason, where the page has one. */
function slashed(reason: NonNullable<Schemas['Payment']['reason']>, round: Round, member: Member, terms: Terms) {
  if (reason === 'harmful_cohort') return ofHospital(round, member, terms)
  return (reason === 'failed_decoy' && failedDecoy(round, member, terms)) || words.slashed(reason)
}

function unpaid(round: Round, member: Member, terms: Terms): string | null {
  if (round.outcome === 'void' || round.round === 0) return null
  if (member.role === 'hospital') return ofHospital(round, member, terms)
  return member.role === 'voter' ? ofVoter(round, member, terms) : words.late()
}

function ofHospital(round: Round, { account, position }: Member, terms: Terms): string {
  const cohort = round.cohorts.find((one) => one.members.includes(position))
  if (!cohort) return words.sat_out()
  if (!round.commitments.some((one) => one.hospital === account)) return words.not_committed()
  const { median } = cohort
  if (!isJudged(cohort) || median === null || !cohort.survivors.includes(position)) return words.not_in_sum()
  if (median < terms.harmful_below) return words.harmful(formatScore(median), formatScore(terms.harmful_below))
  if (median < terms.accept_floor) return words.rejected(formatScore(median), formatScore(terms.accept_floor))
  if (terms.rank_decay_bps > 0) return words.no_rank(formatScore(median), formatScore(terms.rank_floor))
  return words.no_improvement(formatScore(median))
}

function ofVoter(round: Round, member: Member, terms: Terms): string {
  const ballot = ballotOf(round, member)
  if (!ballot) return words.no_seat()
  if (ballot.verdict !== 'scored') return words[ballot.verdict]()
  for (const cohort of round.cohorts.filter(isJudged)) {
    const [score, median] = [scoresOf(ballot, cohort, round).score, cohort.median ?? 0]
    const reach = terms.tolerance_abs + Math.floor((Math.abs(median) * terms.tolerance_bps) / 10_000)
    if (score === null) return words.invalid()
    if (Math.abs(score - median) > reach) return words.far(formatScore(score), formatSize(reach), formatScore(median))
  }
  return words.untested()
}

/** A cohort whose decoy the voter scored at least as high as its sum; null if the page cannot tell it. */
function failedDecoy(round: Round, member: Member, terms: Terms): string | null {
  const ballot = ballotOf(round, member)
  if (!ballot) return null
  for (const cohort of round.cohorts.filter((one) => isJudged(one) && (one.median ?? 0) >= terms.accept_floor)) {
    const { score, decoy } = scoresOf(ballot, cohort, round)
    if (score !== null && decoy !== null && score <= decoy)
      return words.failed_decoy(formatScore(decoy), formatScore(score))
  }
  return null
}

const ballotOf = (round: Round, { account }: Member) => round.committee.ballots.find((one) => one.voter === account)

const isJudged = ({ fate, median }: Schemas['CohortView']) => fate === 'published' && median !== null

/** A ballot's scores of a cohort's true sum, and of its twin with the other sign; null for an invalid model. */
function scoresOf({ scores }: Schemas['Ballot'], { cohort, is_flipped }: Schemas['CohortView'], { cohorts }: Round) {
  const [published, other] = [scores?.[cohort] ?? null, scores?.[cohorts.length + cohort] ?? null]
  return is_flipped ? { score: other, decoy: published } : { score: published, decoy: other }
}

/** A round's outcome in a sentence. */
export function outcomeOf(of: Round, symbol: string | null | undefined): string {
  const { outcome, void_reason, phase, round, cohorts, accepted, payments } = of
  if (outcome === 'pending') return payouts.running(phase ? say.phaseMeans[phase] : '')
  if (outcome === 'void') return payouts.void(say.voidReason[void_reason])
  if (round === 0) return payouts.statistics
  const paid = payments.filter((one) => one.kind === 'reward')
  const [hospitals = 0, voters = 0, aggregator = 0] = ROLES.map(
    (role) => paid.filter((one) => one.role === role).length,
  )
  const amount = formatTokens(paid.reduce((sum, one) => sum + BigInt(one.amount), 0n))
  const told = paid.length
    ? payouts.paid(payouts.parties(hospitals, voters, aggregator), `${amount} ${symbol ?? say.tokens}`)
    : payouts.nothing
  return payouts.settled(accepted.length, cohorts.length, told)
}
