/** An estimate of a delegation, from the pool as it is. Amounts are in the smallest unit. Divisions round down, as in the
 * contract.
 */
export interface WhatIf {
  /** Its part of the earning stake, in millionths. */
  part: number
  /** The loss if all the node's locked bonds were slashed. */
  atRisk: bigint
}

/** The yield of an amount by a rate in millionths: rounded down, also a loss. It promises nothing. */
export function earnedOf(amount: bigint, net: number): bigint {
  const exact = amount * BigInt(net)
  return exact < 0n ? -((-exact + 999_999n) / 1_000_000n) : exact / 1_000_000n
}

export function whatIf(amount: bigint, pool: { active: bigint; locked: bigint; assets: bigint }): WhatIf {
  const together = pool.active + amount
  const assets = pool.assets + amount
  return {
    part: together > 0n ? Number((amount * 1_000_000n) / together) : 0,
    atRisk: assets > 0n ? (amount * pool.locked) / assets : 0n,
  }
}

/** Shares for an amount, rounded down; all of them for all of the worth. */
export function sharesFor(amount: bigint, of: { shares: bigint; worth: bigint }): bigint {
  if (amount >= of.worth) return of.shares
  return (amount * of.shares) / of.worth
}
