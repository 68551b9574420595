/** A share's worth over a node's history, in millionths of what it began with; empty before anybody has shares. */
export function shareWorths(
  changes: readonly { time: number; assets: string; shares: string }[],
): { time: number; worth: number }[] {
  return changes
    .filter((one) => BigInt(one.shares) > 0n)
    .map((one) => ({ time: one.time, worth: Number((BigInt(one.assets) * 1_000_000n) / BigInt(one.shares)) }))
    .toSorted((one, other) => one.time - other.time)
}
