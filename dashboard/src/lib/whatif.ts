/** What delegating so much would be, from the pool as it is. Amounts in the smallest unit; divisions round down, as the
 * contract's do.
 */
export interface WhatIf {
  /** Of all that would earn then, in millionths. */
  part: number
  /** What the same amount, staked over the time that `net` is of, would have earned: no promise. */
  earned: bigint
  /** What one slash of all bonds that the node has locked would take of it, at the most. */
  atRisk: bigint
}

export function whatIf(
  amount: bigint,
  pool: { active: bigint; locked: bigint; assets: bigint },
  net: number,
): WhatIf {
  const together = pool.active + amount
  const assets = pool.assets + amount
  return {
    part: together > 0n ? Number((amount * 1_000_000n) / together) : 0,
    earned: (amount * BigInt(net)) / 1_000_000n,
    atRisk: assets > 0n ? (amount * pool.locked) / assets : 0n,
  }
}

/** Shares for an amount, rounded down; all of them for all of the worth. */
export function sharesFor(amount: bigint, of: { shares: bigint; worth: bigint }): bigint {
  if (amount >= of.worth) return of.shares
  return (amount * of.shares) / of.worth
}
