/** Texts of delegating to a node, and of an account's portfolio. */
export const delegate = {
  title: 'Delegate to this node',
  open: 'Delegate…',
  held: 'Delegated to this node already',
  whatIf: 'Estimate',
  part: 'Your part of the earning stake',
  earned: (days: number) => `It would have earned in the last ${days} ${days === 1 ? 'day' : 'days'}`,
  aYear: 'At the same rate, in a year',
  atRisk: 'It can lose',
  atMost: (now: string) => `all of it; ${now} if all present bonds were slashed`,
  unlock: 'It comes back',
  unlockAt: (period: string, day: string) => `${period} after you undelegate, not before ${day}`,
  commission: 'Commission',
  gas: 'Gas',
  ether: (amount: string) => `about ${amount} ether at the present price`,
  noGas: 'The chain’s node gives no estimate.',
  promises:
    'Yields are from the past, rounded down, and not compounded. Future rewards may be lower. A slash takes the same share of every delegator’s stake, also while it unbonds.',
  approve: 'Approval',
  bySignature: 'By a signature: one transaction',
  byTransaction: 'By an approval: two transactions',
  contractWallet: 'This account is a contract and has no key to sign with, so the approval is a transaction.',
  go: 'Delegate',
}

export const portfolio = {
  title: 'Portfolio',
  lead: 'Your account’s stake, rewards and slashes, read from the contract itself.',
  fromEvents:
    'The API does not answer, so this is read from the chain alone. The history and its export come back with the API.',
  staked: 'Staked',
  claimable: 'Vested rewards',
  unbonding: 'Unbonding',
  unbondingMeans:
    'Unbonding stake earns nothing. Slashes can still reach it until you withdraw it or delegate it again. You can do both once it has matured.',
  holdings: 'Delegations',
  none: 'You have no delegations. Choose a node.',
  claim: 'Claim',
  claimAll: 'Claim all',
  unbond: 'Undelegate',
  withdraw: 'Withdraw',
  redelegate: 'Redelegate',
  redelegateMeans: (amount: string) =>
    `${amount} tokens have matured. You can delegate them to another node without withdrawing them first.`,
  overWorth: 'This is more than you delegated there.',
  howMuch: (all: string) => `Amount, of ${all}`,
}
