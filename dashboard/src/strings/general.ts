/** Texts of the frame around each page, and names that several pages show. */
import { point } from '../lib/amounts'

export const name = 'Consilium'
export const skip = 'Skip to the content'
export const theme = { label: 'Theme', system: 'System', light: 'Light', dark: 'Dark' }
export const language = 'Language'
export const times = {
  day: 'd',
  hour: 'h',
  minute: 'min',
  second: 's',
  now: 'now',
  ahead: (duration: string) => `in ${duration}`,
  ago: (duration: string) => `${duration} ago`,
}
export const nav = {
  overview: 'Overview',
  tasks: 'Tasks',
  market: 'Market',
  nodes: 'Nodes',
  portfolio: 'Portfolio',
  propose: 'Propose',
  desk: 'My node',
  wallet: 'Wallet',
  search: 'Search',
  label: 'Main',
  crumbs: 'Path to this page',
}
export const live = { connecting: 'connecting…', live: 'live', lost: 'no live events: retrying' }
export const footer = (block: number | null, behind: number | null) =>
  block === null
    ? 'No block is indexed yet.'
    : `Complete up to block ${block}${behind ? `, ${behind} ${behind === 1 ? 'block' : 'blocks'} behind the chain` : ''}. You can check every round yourself.`
export const loading = 'Loading'
export const unread = 'not known yet'
export const none = 'none'
export const more = 'Show more'
export const moreRows = (left: number) => `Show more (${left} left)`
export const retry = 'Try again'
export const cancel = 'Cancel'
export const command = 'Command'
export const copy = 'Copy'
export const copied = 'Copied'
export const explorer = 'Explorer'
export const tokens = 'tokens'
export const unreachable = 'The API does not answer. This page may be out of date. It retries by itself.'
export const faulty = (detail: string) => `This could not be loaded: ${detail}`
export const notFound = 'This page does not exist.'
export const home = 'To the overview'
export const crashed = 'An error in the dashboard stopped this page. Reload it.'
export const tableOf = 'Show as a table'
export const unitBy = (unit: string, across: string) => `${unit}, by ${across.toLowerCase()}`
export const both = (time: string, utc: string) => `${time} (${utc})`
export const notAmount = `This is not an amount. Enter digits, with “${point}” before a fraction of a token.`
export const overBalance = 'This is more than your wallet holds.'
export const balance = 'In your wallet'
export const amount = 'Amount, in tokens'
export const role = { hospital: 'Hospital', voter: 'Voter', aggregator: 'Aggregator' }
export const roles = { hospital: 'Hospitals', voter: 'Voters', aggregator: 'Aggregators' }
export const phase = {
  none: 'None',
  joining: 'Joining',
  forming: 'Forming cohorts',
  committing: 'Committing',
  uploading: 'Uploading',
  publishing: 'Publishing',
  disputing: 'Dispute',
  drawing: 'Drawing seats',
  scoring: 'Scoring',
  revealing: 'Revealing',
  disclosing: 'Disclosing decoys',
  settling: 'Settling',
  ended: 'Ended',
}
export const phaseMeans = {
  none: '',
  joining: 'Hospitals, voters and the aggregator lock their bonds.',
  forming: 'The beacon assigns hospitals to cohorts.',
  committing: 'Hospitals train, and commit to their updates.',
  uploading: 'Hospitals upload their masked updates to the aggregator.',
  publishing: 'The aggregator publishes the sum of each cohort. The chain checks it against the commitments.',
  disputing: 'A cohort has no valid sum. The dispute finds the cheater.',
  drawing: 'The beacon draws the committee.',
  scoring: 'The committee scores the sums on held-out data, and commits to the scores.',
  revealing: 'The committee reveals its scores.',
  disclosing: 'The aggregator discloses which sums were sign-flipped to test the committee.',
  settling: 'The contract pays rewards and takes slashes.',
  ended:
    'The task is over. The operator gets back the pay of rounds that were not played. Pay that rounds did not earn is burnt.',
}
export const outcome = { pending: 'Running', settled: 'Settled', void: 'Void' }
export const voidReason = {
  none: '',
  too_few_hospitals: 'too few hospitals committed',
  survivors_not_fixed: 'the aggregator did not fix the survivors',
  not_published: 'the aggregator did not publish the sums',
  too_few_scores: 'too few committee members revealed',
  not_disclosed: 'the aggregator did not disclose its decoys',
  mismatched: 'the published sums differ from the sums that voters scored',
  no_sums: 'no cohort had a valid sum',
  no_randomness: 'the beacon gave no value for a week, so the task ended',
}
export const reason = {
  harmful_cohort: 'its cohort made the model worse',
  withheld_upload: 'did not upload the update that it committed to',
  false_upload: 'uploaded an update that differs from its commitment',
  not_revealed: 'did not reveal its scores',
  failed_decoy: 'scored a sign-flipped sum as a true one',
  not_published: 'did not publish the sums',
  not_disclosed: 'did not disclose which sums were sign-flipped',
  mismatched: 'most voters say that it published wrong sums or named the wrong hospitals',
}
/** Of a payment, or of another event in an account's history. */
export const kind = {
  reward: 'Reward',
  slash: 'Slash',
  bounty: 'Bounty',
  refund: 'Refund',
  delegated: 'Delegated',
  unbonding_started: 'Unbonding started',
  unbonded: 'Withdrawn',
  claimed: 'Claimed',
}
