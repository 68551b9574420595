/** What a task's rounds pay by its pool, and how far the pool may grow. Amounts in the smallest unit; divisions round
 * down, as the contract's do (`chain/consilium_chain/tasks/funding.py` is the same).
 */

const BASIS_POINTS = 10_000n
const SLASH_PER_FEE = 2n // the aggregator's slash for a round let go by, in fees of a round

export interface Paying {
  rounds: number
  pool: string
  aggregator_bond: string
  not_published_slash_bps: number
  hospital_share_bps: number
  voter_share_bps: number
  aggregator_share_bps: number
}

/** The most that one round pays, by role. */
export interface RoundPay {
  hospital: bigint
  voter: bigint
  aggregator: bigint
}

function portion(amount: bigint, bps: number): bigint {
  return (amount * BigInt(bps)) / BASIS_POINTS
}

export function roundPay(terms: Paying, pool: bigint): RoundPay {
  const payable = pool / BigInt(terms.rounds)
  return {
    hospital: portion(payable, terms.hospital_share_bps),
    voter: portion(payable, terms.voter_share_bps),
    aggregator: portion(payable, terms.aggregator_share_bps),
  }
}

/** The most that can be added: with more, the aggregator's bond would not outweigh its fee. Null without a limit. */
export function roomInPool(terms: Paying): bigint | null {
  if (terms.aggregator_share_bps === 0) return null
  const fee = portion(BigInt(terms.aggregator_bond), terms.not_published_slash_bps) / SLASH_PER_FEE
  const payable = ((fee + 1n) * BASIS_POINTS - 1n) / BigInt(terms.aggregator_share_bps) // whose portion is that fee
  const rounds = BigInt(terms.rounds)
  return payable * rounds + rounds - 1n - BigInt(terms.pool)
}
