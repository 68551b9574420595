/** What an audit of a whole task reads, and about how long it takes. Pure. */

/** A round's state in the contract, as far as it says what is read. Maps have a bit for each cohort. */
interface RoundState {
  viableCohorts: bigint
  droppedCohorts: bigint
  acceptedCohorts: bigint
  flippedCohorts: bigint
  isVoid: boolean
}

interface Terms {
  decoys: boolean
  updateBlobs: number
  statisticsBlobs: number
}

export const MOST_EARLIER = 600 // blobs of earlier rounds: each takes up to a second on a slow computer
const SECONDS_A_BLOB = 0.5
const SECONDS_A_ROUND = 1 // for its record and the ceremony

/** The number of blobs that the checks of a round read. `states`: of all rounds from 0. A sign-flipped sum needs those of all
 * training rounds before.
 */
export function blobsOf(states: readonly RoundState[], round: number, terms: Terms): number {
  const state = states[round]
  if (!state || state.isVoid) return 0
  const own =
    bits(state.viableCohorts & ~state.droppedCohorts) * (round === 0 ? terms.statisticsBlobs : terms.updateBlobs)
  if (round === 0 || !terms.decoys || state.flippedCohorts === 0n) return own
  const before = states.slice(1, round).reduce((sum, one) => sum + bits(one.acceptedCohorts), 0) * terms.updateBlobs
  return before > MOST_EARLIER ? own : own + before
}

/** Seconds for the rounds that are left. `blobs`: of each round; the first `done` took `elapsed` seconds. Until one round is
 * done, it is what an ordinary computer takes.
 */
export function secondsLeft(blobs: readonly number[], done = 0, elapsed = 0): number {
  const usual = (of: readonly number[]) => of.reduce((sum, one) => sum + SECONDS_A_ROUND + one * SECONDS_A_BLOB, 0)
  const left = usual(blobs.slice(done))
  return done === 0 ? left : (left * elapsed) / usual(blobs.slice(0, done))
}

function bits(map: bigint): number {
  return map.toString(2).replaceAll('0', '').length
}
