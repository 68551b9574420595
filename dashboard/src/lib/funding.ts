/** The pay of a task's rounds from its pool, and the pool's limit. Amounts are in the smallest unit. Divisions round down,
 * as in the contract and in `chain/consilium_chain/tasks/proposal.py`.
 */

const BASIS_POINTS = 10_000n
const SLASH_PER_FEE = 2n // the aggregator's slash for a missed round, in fees of a round

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

/** The most that can be added to the pool, so that the aggregator's slash still outweighs its fee; null for no limit. */
export function roomInPool(terms: Paying): bigint | null {
  if (terms.aggregator_share_bps === 0) return null
  const fee = portion(BigInt(terms.aggregator_bond), terms.not_published_slash_bps) / SLASH_PER_FEE
  const payable = ((fee + 1n) * BASIS_POINTS - 1n) / BigInt(terms.aggregator_share_bps) // the highest whose portion is that fee
  const rounds = BigInt(terms.rounds)
  return payable * rounds + rounds - 1n - BigInt(terms.pool)
}
