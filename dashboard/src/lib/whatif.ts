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

const FRACTION_BITS = 48n

/** A position's part of the rewards that have not vested, at the pool's present stakes and commission (`Pools.sol`). Fractions
 * that stay in the pool after `vestingEnd` are not counted. Times are in seconds since the epoch.
 */
export function vestingOf(
  pool: { unvestedX48: bigint; commissionBps: number; shares: bigint; unbondingShares: bigint; vestingEnd: number },
  shares: bigint,
  isOwner: boolean,
  now: number,
): bigint {
  if (pool.vestingEnd <= now) return 0n
  const earning = pool.shares - pool.unbondingShares
  const fee = earning > 0n ? (pool.unvestedX48 * BigInt(pool.commissionBps)) / 10_000n : pool.unvestedX48
  const gain = earning > 0n ? ((pool.unvestedX48 - fee) * shares) / earning : 0n
  return (gain + (isOwner ? fee : 0n)) >> FRACTION_BITS
}
