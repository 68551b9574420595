/** Texts of connecting a wallet, of sending a transaction, and of its refusal. */
export const wallet = {
  chain: (id: number) => `Consilium’s chain (${id})`,
  connect: 'Connect a wallet',
  connectMeans: 'Your keys stay in the wallet. Nothing is sent before you confirm it there.',
  noWallet:
    'This browser has no wallet. Install one, for example MetaMask or Rabby. On a phone, open this page in your wallet’s own browser.',
  onPhone: 'If you have one of these wallets on this phone, open this page in its browser:',
  openIn: (wallet: string) => `Open in ${wallet}`,
  injected: 'The browser’s wallet',
  connected: 'Connected as',
  by: (wallet: string) => `by ${wallet}`,
  switched: 'The wallet has switched to another account. Forms below keep what you entered, and go on with',
  understood: 'Understood',
  disconnect: 'Disconnect',
  noNode: 'this site has no chain node. Connect a wallet.',
  wrongChain: (id: number) => `The wallet is on another chain. These contracts are on chain ${id}.`,
  switchChain: 'Switch the chain',
}

export const sending = {
  act: (act: number, of: number) => `${act} of ${of}: `,
  permitting: 'Sign the approval in your wallet. This costs nothing.',
  checking: 'Checking with the contract that this will succeed…',
  signing: 'Confirm it in your wallet.',
  pending: 'Sent. Waiting for the chain…',
  confirmed: (block: bigint, replaced: boolean) =>
    `Done, in block ${block}${replaced ? ', with a higher fee than first sent' : ''}.`,
  slow: 'No answer yet. The wallet may be locked, or may wait in another window or on another device.',
  leave: 'Stop waiting',
  left: 'This page waits no more, and nothing more is asked. The wallet may still show a request: decline it there. If you confirm it, it is sent.',
  partly: (act: number, of: number) =>
    `The wallet sent step ${act} of ${of} after all, and the chain carried it out. The rest was not asked for.`,
  stands: {
    staking: (amount: string) =>
      `An approval stands: the staking contract may take ${amount} of your tokens. Go on with the same amount and no second approval is asked, or take it back.`,
    tasks: (amount: string) =>
      `An approval stands: the task contract may take ${amount} of your tokens. Go on with the same amount and no second approval is asked, or take it back.`,
  },
  takeBack: 'Take the approval back',
  cancelled: 'You cancelled this in your wallet. It will not be carried out.',
  replaced: 'Another transaction of yours replaced this one. This one will not be carried out.',
  outOfGas:
    'The transaction failed, most likely because it ran out of gas. Only the fee was paid. Try again with the gas limit that the wallet proposes.',
}

export const refused = {
  declined: 'You declined this in your wallet. It was not sent.',
  noEther: 'The account has too little ether to pay for gas. Send it some, and try again.',
  wrongChain: 'The wallet is on another chain. Switch it, and try again.',
  noNode: 'The chain node does not answer. Try again later, or connect a wallet that has its own node.',
  busy: 'The wallet is locked, or waits for your answer to an earlier request. Open it, answer there, and try again.',
  noAccount: 'The wallet does not let this page use the account. Unlock it or connect again, and try again.',
  otherAccount:
    'The wallet has another account selected by now. This was not sent. Select the first one again, or go on with this one.',
  disconnected: 'The wallet has no connection to the chain. Check its network, and try again.',
  late: 'The chain has not answered in time. Look at the wallet or at your account’s history before you try again.',
  code: (code: number) =>
    `The wallet or its chain node reports a fault (code ${code}). Try again, or use another wallet or node.`,
  reverted: (why: string) => `The contract refuses this: ${why}`,
  other: (why: string) => `This did not work: ${why}`,
  unknown: 'The contract refuses this',
  byName: {
    AmountIsZero: 'The amount must be above zero',
    AlreadyRegistered: 'This account is a node of that role already',
    NodeUnknown: 'This node does not exist',
    CommissionTooHigh: 'The commission is too high',
    PoolWornOut: 'Slashes have left too little of this node’s stake to add to it',
    StakeInsufficient: 'The node has too little free stake',
    SharesInsufficient: 'You have less than this on that node',
    RequestUnknown: 'This unbonding request does not exist, or was withdrawn already',
    StillUnbonding: 'This has not matured yet: wait until then',
    StillBacking: 'A locked bond needs this stake until its task has ended: take out less, or wait',
    OnlyWithdrawalAddress: 'The withdrawal address is another account: only it can act here',
    WithdrawalAddressInvalid: 'This account cannot be paid: choose another address',
    PaidElsewhere: 'This is paid to the node’s withdrawal address, so it cannot be delegated from here',
    NothingToClaim: 'There is nothing to claim yet',
    ERC20InsufficientBalance: 'The account has too few tokens',
    ERC20InsufficientAllowance: 'The approval is for a smaller amount: approve again',
    ERC20InvalidSpender: 'This contract cannot be approved',
    ERC2612ExpiredSignature: 'The signature has expired: sign again',
    ERC2612InvalidSigner: 'Another account made the signature: sign again',
    NotOperator: 'Only the task’s operator may do this',
    ParamsInvalid: 'The task’s terms are not valid',
    ProposalsStopped: 'These contracts take no new tasks any more',
    TaskUnknown: 'This task does not exist',
    TaskFull: 'The task is full',
    AlreadyJoined: 'This account has joined already',
    WrongPhase: 'The task is in another phase',
    AlreadyStopped: 'The task has been stopped, or has ended',
    SafeERC20FailedOperation: 'The tokens could not be transferred',
  },
}
