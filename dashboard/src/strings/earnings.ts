/** Texts of the portfolio's earnings, of claiming with a new delegation, and of the choice of a node. */
export const earnings = {
  title: 'Earned',
  means:
    'A month counts the rewards that you claimed in it, by UTC. Slashes are in the worth of the stake, not here. The export has all entries.',
  month: 'Month',
  share: 'Compared',
  unclaimed: 'Vested, not claimed yet',
  inAll: 'Worth in all',
  inAllMeans: 'Stake, unbonding stake and vested rewards',
  earned: 'Earned in all',
  earnedMeans: 'Claimed, and vested',
  vesting: 'Still vesting',
  until: 'all by',
  left: (request: bigint) => `Time that request ${request} has unbonded`,
}

export const restake = {
  title: 'Claim and restake',
  steps: (amount: string, node: string) => [
    `Step 1 claims your rewards from ${node}: at least ${amount} tokens.`,
    `Step 2 delegates exactly ${amount} tokens to ${node} again.`,
  ],
  means:
    'Your wallet asks three times: for each step, and for a signature that approves this amount. Rewards that vest meanwhile stay in your wallet.',
  less: (amount: string) =>
    `Only ${amount} tokens were claimed, because somebody claimed with this account meanwhile. Nothing was delegated.`,
  stands: (amount: string) => `Step 1 is done: ${amount} claimed tokens are in your wallet. They are not delegated.`,
  goOn: 'Delegate them now',
  keep: 'Keep them',
}

export const pick = {
  none: 'Choose a node',
  other: 'Another address…',
  address: 'Address of the node',
  rate: (rate: string) => `${rate} in 30 days`,
  option: (node: string, rate: string, commission: string) => `${node}: ${rate}, commission ${commission}`,
}
