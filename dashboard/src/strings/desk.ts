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
    'The node’s software does all of this by itself. Look after it if a duty stays here until its deadline.',
  nothingToDo: 'Nothing to do now.',
  noApi:
    'The API does not answer, so duties, tasks and payments are missing. Stakes are read from the chain.',
  overdue: 'too late: anybody may end the phase',
  deed: {
    commit: 'Train and commit to the update',
    handOver: 'Upload the update to the aggregator',
    unmask: 'Help to unmask the sum',
    testify: 'Give evidence in the dispute',
    score: 'Score the sums, if your key draws a seat',
    reveal: 'Reveal the scores',
    fixSurvivors: 'Fix the survivors',
    publish: 'Publish the sums',
    nameCulprits: 'Name the cheater in the dispute',
    openCanaries: 'Disclose the canaries, and settle',
  },
  without: {
    commit: 'no reward from this round',
    handOver: 'no reward from this round either',
    unmask: 'its cohort may get no sum and no reward',
    testify: 'if the dispute names it and the committee agrees',
    score: 'no reward from this round',
    reveal: 'no reward from this round either',
    fixSurvivors: 'and the round is void',
    publish: 'and the round is void',
    nameCulprits: 'and the round is void',
    openCanaries: 'and the round is void',
  },
  withoutStatistics: 'this round pays nobody, but the task ends if it is void',
  slash: (percent: string, tokens: string) => `${tokens} tokens, at most ${percent} of the bond`,
  amounts: {
    active: 'Stake of all delegators',
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
  addTwoSteps: 'Two transactions: an approval, and the stake. It backs new bonds, and present ones.',
  newCommission: 'Commission, in per cent',
  setCommission: 'Set commission',
  commissionMeans: (after: string) =>
    `A lower commission applies at once. A higher one applies ${after} later, the unbonding period, so delegators can leave before.`,
  notPercent: 'This is not a commission. Use 0 to 100, with at most two digits after the point.',
  become: 'Become a node',
  becomeMeans: {
    hospital:
      'A hospital trains on data that never leave it. A bond of this stake backs its uploads. It earns rewards for improving the model.',
    voter:
      'A voter scores sums on held-out rows. A bond of this stake ensures that it reveals the scores it committed to.',
    aggregator:
      'An aggregator collects updates and publishes their sums. A bond of this stake ensures that it does so in time.',
  },
  role: 'Role',
  amount: 'Stake, in tokens',
  register: 'Register',
  registerMeans:
    'A registered account keeps its role. You can add stake later. With stake, registering takes two transactions: an approval first.',
  command: {
    hospital: {
      title: 'Keys and joining tasks',
      means:
        'The hospital’s own machine makes its transport and encryption keys, never a browser. It registers them when it joins a task. On that machine, run:',
      command: 'consilium hospital init',
    },
    voter: {
      title: 'The key that draws seats',
      means:
        'It is derived from the voter’s key file, and registered with a proof signed by it. A wallet can do neither. On the machine with this account’s key file, run:',
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
  someTasks: (n: number) => `The latest ${n} of each role. The node’s own page has all.`,
  release: 'Release',
  releaseOf: (task: number) => `Release the bond of task ${task}`,
  payments: 'My rewards and slashes',
  noPayments: 'This account has no rewards or slashes yet.',
}
