/** Texts of delegating to a node, and of an account's portfolio. */
export const delegate = {
  title: 'Delegate to this node',
  open: 'Delegate…',
  held: 'Delegated to this node already',
  whatIf: 'Estimate',
  part: 'Your part of the earning stake',
  earned: (days: number) => `It would have earned in the last ${days} ${days === 1 ? 'day' : 'days'}`,
  atRisk: 'It would lose, if all locked bonds were slashed',
  promises:
    'The estimate is from the past. Rewards depend on future rounds. A slash reaches every delegator by its part.',
  approve: 'Approval',
  bySignature: 'By a signature: one transaction',
  byTransaction: 'By an approval: two transactions',
  go: 'Delegate',
}

export const portfolio = {
  title: 'Portfolio',
  lead: 'Your account’s stake, rewards and slashes, read from the contract itself. The command line can do the same as the buttons here.',
  fromEvents: 'The API does not answer, so this is read from the chain alone. History and export return with the API.',
  staked: 'Staked',
  claimable: 'Vested rewards',
  unbonding: 'Unbonding',
  unbondingMeans:
    'Unbonding stake earns nothing. Slashes reach it until it has matured. Then you can withdraw it or delegate it again.',
  holdings: 'Delegations',
  none: 'You have no delegations. Choose a node.',
  claim: 'Claim',
  claimAll: 'Claim all',
  unbond: 'Undelegate',
  withdraw: 'Withdraw',
  redelegate: 'Redelegate',
  redelegateMeans: (amount: string) =>
    `${amount} tokens have matured. They can back another node without being withdrawn first.`,
  overWorth: 'This is more than you delegated there.',
  howMuch: (all: string) => `Amount, of ${all}`,
}
