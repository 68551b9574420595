import { expect, test } from 'vitest'
import { outcomeOf, unpaidOf } from '../src/lib/unpaid'

type Round = Parameters<typeof unpaidOf>[0]
type Member = Parameters<typeof unpaidOf>[1]['participants'][number]
type Reason = NonNullable<Round['payments'][number]['reason']>

const terms = {
  accept_floor: 0,
  harmful_below: -40_000,
  rank_decay_bps: 0,
  rank_floor: 0,
  tolerance_abs: 1_000,
  tolerance_bps: 1_000,
}
const member = (role: Member['role'], position = 0): Member => ({
  account: `0x${role}${position}`,
  role,
  position,
  weight: 5,
  accepted: 0,
  joined_at: 0,
  earned: '0',
  slashed: '0',
  bond: '0',
})
const [hospital, voter, aggregator] = [member('hospital'), member('voter'), member('aggregator')]
const cohort = {
  cohort: 0,
  members: [0, 1, 2],
  survivors: [0, 1, 2],
  is_flipped: false,
  blobs: [],
  median: 10_000,
  accepted: true,
  fate: 'published' as const,
}
const payment = (to: Member, kind: 'reward' | 'slash', reason: Reason | null = null) => ({
  kind,
  reason,
  task: 1,
  round: 2,
  account: to.account,
  role: to.role,
  amount: String(10n ** 18n),
  time: 0,
  block: 1,
  log_index: 0,
  transaction: null,
})
const ballot = (verdict: Round['committee']['ballots'][number]['verdict'], scores: (number | null)[] | null) => ({
  voter: voter.account,
  position: 0,
  commitment: null,
  verdict,
  scores,
})
const settled = (changes: Partial<Round> = {}): Round => ({
  task: 1,
  round: 2,
  phase: null,
  outcome: 'settled',
  void_reason: 'none',
  medians: [10_000],
  accepted: [0],
  started_at: 0,
  ended_at: 1,
  cohorts: [cohort],
  commitments: [
    {
      hospital: hospital.account,
      position: 0,
      point_hashes: [],
      points: null,
      share_bundle: null,
      transaction: '0x',
      block: 1,
    },
  ],
  committee: { seed: null, seat_weight: null, ballots: [], spread: [] },
  payments: [],
  evidence: [],
  ...changes,
})
const why = (of: Member, changes: Partial<Round>) =>
  unpaidOf(settled(changes), { terms, participants: [of] }).map((one) => one.why)
const scored = (...scores: (number | null)[]) => ({
  committee: { seed: null, seat_weight: null, ballots: [ballot('scored', scores)], spread: [] },
})
const judged = (verdict: Parameters<typeof ballot>[0]) => ({
  committee: { seed: null, seat_weight: null, ballots: [ballot(verdict, null)], spread: [] },
})
const slashed = (of: Member, reason: Reason) => ({ payments: [payment(of, 'slash', reason)] })

test.each<[string, Member, Partial<Round>, string]>([
  ['sat out', hospital, { cohorts: [{ ...cohort, members: [1, 2] }] }, 'in no cohort'],
  ['not committed', hospital, { commitments: [] }, 'committed to no update'],
  ['not in the sum', hospital, { cohorts: [{ ...cohort, survivors: [1, 2] }] }, 'in no published sum'],
  ['dropped', hospital, { cohorts: [{ ...cohort, fate: 'dropped', median: 0 }] }, 'in no published sum'],
  ['accused', hospital, { cohorts: [{ ...cohort, fate: 'accused', median: 0 }] }, 'in no published sum'],
  [
    'rejected',
    hospital,
    { cohorts: [{ ...cohort, median: -12_000, accepted: false }] },
    'its cohort’s median −0.0120 is below the threshold 0.0000.',
  ],
  [
    'harmful',
    hospital,
    { cohorts: [{ ...cohort, median: -80_000, accepted: false }], ...slashed(hospital, 'harmful_cohort') },
    'slashed, because its cohort’s median −0.0800 is below the limit −0.0400.',
  ],
  ['no improvement', hospital, { cohorts: [{ ...cohort, median: 0 }] }, 'median 0.0000 is accepted, but'],
  ['withheld', hospital, slashed(hospital, 'withheld_upload'), 'did not upload the update'],
  ['false upload', hospital, slashed(hospital, 'false_upload'), 'uploaded an update that differs'],
  ['no seat', voter, {}, 'not drawn into the committee'],
  ['stood down', voter, judged('stood_down'), 'stood down'],
  ['silent', voter, judged('not_revealed'), 'did not reveal its scores'],
  ['silent and slashed', voter, { ...judged('not_revealed'), ...slashed(voter, 'not_revealed') }, 'it was slashed'],
  ['no match', voter, judged('does_not_match'), 'do not match'],
  ['far', voter, scored(13_000, -9_000), 'its score +0.0130 is more than 0.0020 from the median +0.0100.'],
  ['invalid', voter, scored(null, 0), 'invalid model'],
  ['untested', voter, scored(11_000, 9_000), 'to test the committee'],
  [
    'failed decoy',
    voter,
    { ...scored(10_000, 10_500), ...slashed(voter, 'failed_decoy') },
    'sign-flipped sum with +0.0105 and the true one with +0.0100',
  ],
  [
    'failed flipped decoy',
    voter,
    { ...scored(10_500, 10_000), cohorts: [{ ...cohort, is_flipped: true }], ...slashed(voter, 'failed_decoy') },
    'sign-flipped sum with +0.0105 and the true one with +0.0100',
  ],
  ['late', aggregator, {}, 'grace period'],
  ['not published', aggregator, { outcome: 'void', ...slashed(aggregator, 'not_published') }, 'did not publish'],
  ['not disclosed', aggregator, { outcome: 'void', ...slashed(aggregator, 'not_disclosed') }, 'did not disclose'],
  ['mismatched', aggregator, { outcome: 'void', ...slashed(aggregator, 'mismatched') }, 'because most voters say'],
])('the reason is said: %s', (_, of, changes, told) => {
  const [only, ...more] = why(of, changes)
  expect(only).toContain(told)
  expect(more).toEqual([])
})

test('members that were paid, and rounds that pay no member, need no reason', () => {
  const all = [hospital, voter, aggregator]
  const paid = all.map((one) => payment(one, 'reward'))
  expect(unpaidOf(settled({ payments: paid }), { terms, participants: all })).toEqual([])
  for (const round of [{ outcome: 'void' as const }, { round: 0 }, { outcome: 'pending' as const }])
    expect(unpaidOf(settled(round), { terms, participants: all })).toEqual([])
})

test('pay of another role of the same account is not its own', () => {
  const both = { ...voter, account: hospital.account }
  const found = unpaidOf(settled({ payments: [payment(hospital, 'reward')] }), {
    terms,
    participants: [hospital, both],
  })
  expect(found.map(({ member: { role } }) => role)).toEqual(['voter'])
})

test.each<[Partial<Round>, string]>([
  [
    { payments: [payment(hospital, 'reward'), payment(voter, 'reward'), payment(aggregator, 'reward')] },
    'This round is settled: 1 of 1 cohort was accepted, and 1 hospital, 1 voter and the aggregator were paid 3.00 CSM together.',
  ],
  [{ accepted: [] }, 'This round is settled: 0 of 1 cohort was accepted, and it paid no rewards.'],
  [
    { outcome: 'void', void_reason: 'too_few_scores' },
    'This round is void: too few committee members revealed. It pays no rewards.',
  ],
  [{ round: 0 }, 'This round is settled: it added up statistics to scale the data, so it pays no rewards.'],
  [{ outcome: 'pending', phase: 'revealing' }, 'This round is not over: The committee reveals its scores.'],
])('an outcome is a sentence: %o', (changes, told) => expect(outcomeOf(settled(changes), 'CSM')).toContain(told))
