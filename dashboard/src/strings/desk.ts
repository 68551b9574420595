/** Texts of the page of a node's owner. */
export const desk = {
  title: 'My node',
  lead: 'Duties, stake and earnings of your account as a hospital, voter or aggregator.',
  own: 'Own stake',
  ownMeans: 'as a node, in all roles',
  claimable: 'Vested rewards',
  toPortfolio: 'Claim in the portfolio',
  duties: 'To do',
  dutiesMeans:
    'The node’s software does all of this by itself. Check the node if a duty is still here shortly before its deadline.',
  nothingToDo: 'Nothing to do now.',
  noApi: 'The API does not answer, so duties, tasks and payments are missing. Stakes are read from the chain.',
  overdue: 'too late: anybody may end the phase now',
  deed: {
    commit: 'Train and commit to the update',
    handOver: 'Upload the update to the aggregator',
    unmask: 'Help to remove the masks from the sum',
    submitEvidence: 'Give evidence in the dispute',
    score: 'Score the sums, if your key draws a seat',
    reveal: 'Reveal the scores',
    fixSurvivors: 'Fix the survivors',
    publish: 'Publish the sums',
    nameCheaters: 'Name the cheater in the dispute',
    discloseDecoys: 'Disclose the decoys, and settle',
  },
  without: {
    commit: 'no reward from this round',
    handOver: 'no reward from this round either',
    unmask: 'your cohort may get no sum, and then no reward',
    submitEvidence: 'if the aggregator names you as a cheater and the committee agrees',
    score: 'no reward from this round',
    reveal: 'no reward from this round either',
    fixSurvivors: 'and the round is void',
    publish: 'and the round is void',
    nameCheaters: 'and the round is void',
    discloseDecoys: 'and the round is void',
  },
  withoutStatistics: 'this round pays no rewards, but the task ends if the round is void',
  slash: (percent: string, tokens: string) => `${tokens} tokens, at most ${percent} of the bond`,
  amounts: {
    active: 'Stake of you and your delegators',
    own: 'Your own part',
    free: 'Free for new bonds',
    locked: 'Locked in bonds',
    unbonding: 'Unbonding',
  },
  commission: 'Commission',
  key: 'Voter key',
  keyThere: 'registered',
  keyMissing: 'not registered: this voter can join no task',
  page: 'Public page of this node',
  undelegate: 'Undelegate in the portfolio',
  more: 'Add to the stake, in tokens',
  addStake: 'Add stake',
  addTwoSteps:
    'This takes two transactions: the approval, then the stake. The stake backs new bonds, and slashes for present bonds can reach it, too.',
  newCommission: 'Commission, in per cent',
  setCommission: 'Set commission',
  commissionMeans: (after: string) =>
    `A lower commission applies at once. A higher one applies after the unbonding period (${after}), so that delegators can leave first.`,
  notPercent: 'This is not a commission. Enter a number from 0 to 100, with at most two digits after the point.',
  become: 'Become a node',
  becomeMeans: {
    hospital:
      'A hospital trains on data that never leaves it. It earns rewards when its updates improve the model. Each task locks a part of the stake as a bond. A missing, false or harmful update costs a part of the bond.',
    voter:
      'A voter scores sums on held-out rows, and earns rewards for scores near the median. Each task locks a part of the stake as a bond. Scores that are not revealed, or that fail a test, cost a part of the bond.',
    aggregator:
      'An aggregator collects updates, publishes their sums, and earns a fee. Each task locks a part of the stake as a bond. Missing or wrong sums cost a part of the bond.',
  },
  role: 'Role',
  amount: 'Stake, in tokens',
  register: 'Register',
  registerMeans:
    'The account keeps this role for good. You can add stake later. With stake, this takes two transactions: the approval, then the registration.',
  command: {
    hospital: {
      title: 'Keys and joining tasks',
      means:
        'The hospital’s own machine makes its transport and encryption keys, because they must not be in a browser. It registers them when it joins a task. On that machine, run:',
      command: 'consilium hospital init',
    },
    voter: {
      title: 'The key that draws seats',
      means:
        'This key is derived from the voter’s key file, and signs a proof when it is registered. A wallet can do neither. On the machine with this account’s key file, run:',
      command: 'consilium voter register',
    },
    aggregator: {
      title: 'Running it',
      means:
        'The aggregator’s server joins the tasks that name it. It needs this account’s key file. On its machine, run:',
      command: 'consilium server run --config node.toml',
    },
  },
  tasks: 'My tasks',
  noTasks: 'This account has joined no task.',
  someTasks: (n: number) => `These are the latest ${n} tasks of each role. The node’s public page has all of them.`,
  release: 'Release',
  releaseOf: (task: number) => `Release the bond of task ${task}`,
  payments: 'My rewards and slashes',
  noPayments: 'This account has no rewards or slashes yet.',
}
