/** A task's terms as the contract takes them, from the API's terms of a task file. Each field is written by hand, so that
 * the compiler finds a missing one, and one that the contract does not have.
 */
import type { Address, ContractFunctionArgs, Hash } from 'viem'
import type { Schemas } from '../api/client'
import type { tasksAbi } from '../generated/abi'

export type TaskParams = ContractFunctionArgs<typeof tasksAbi, 'nonpayable', 'propose'>[0]

export function taskParams(terms: Schemas['Terms'], specHash: Hash, aggregator: Address): TaskParams {
  return {
    specHash,
    aggregator,
    digests: terms.digests,
    canaries: terms.canaries,
    masked: terms.masked,
    updateBits: terms.update_bits,
    laneBits: terms.lane_bits,
    pool: BigInt(terms.pool),
    hospitalBond: BigInt(terms.hospital_bond),
    voterBond: BigInt(terms.voter_bond),
    aggregatorBond: BigInt(terms.aggregator_bond),
    tickBounty: BigInt(terms.tick_bounty),
    rounds: terms.rounds,
    cohorts: terms.cohorts,
    minCohortSize: terms.min_cohort_size,
    minHospitals: terms.min_hospitals,
    maxHospitals: terms.max_hospitals,
    minVoters: terms.min_voters,
    maxVoters: terms.max_voters,
    seats: terms.seats,
    minReveals: terms.min_reveals,
    statisticsBlobs: terms.statistics_blobs,
    updateBlobs: terms.update_blobs,
    rowsPerWeight: terms.rows_per_weight,
    maxWeight: terms.max_weight,
    acceptFloor: BigInt(terms.accept_floor),
    harmfulBelow: BigInt(terms.harmful_below),
    toleranceAbs: BigInt(terms.tolerance_abs),
    toleranceBps: terms.tolerance_bps,
    canaryMargin: BigInt(terms.canary_margin),
    hospitalShareBps: terms.hospital_share_bps,
    voterShareBps: terms.voter_share_bps,
    aggregatorShareBps: terms.aggregator_share_bps,
    harmfulSlashBps: terms.harmful_slash_bps,
    withheldSlashBps: terms.withheld_slash_bps,
    notRevealedSlashBps: terms.not_revealed_slash_bps,
    failedCanarySlashBps: terms.failed_canary_slash_bps,
    notPublishedSlashBps: terms.not_published_slash_bps,
    joinWindow: terms.join_window,
    commitWindow: terms.commit_window,
    uploadWindow: terms.upload_window,
    publishWindow: terms.publish_window,
    scoreWindow: terms.score_window,
    revealWindow: terms.reveal_window,
  }
}

const LIST = 'the task file does not hold: '

/** The single faults in the problem of `POST /v1/tasks/check`, each with its field. The API has no list of them. */
export function faultsOf(problem: string): string[] {
  return problem.startsWith(LIST) ? problem.slice(LIST.length).split('; ') : [problem]
}
