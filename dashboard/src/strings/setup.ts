/** Texts of bringing the network and tokens into a wallet. */
export const setup = {
  title: 'Your wallet',
  lead: 'Bring this network and its token into your browser’s wallet.',
  link: 'Set up your wallet',
  network: 'The network',
  networkMeans: 'The button enters these for you. You can also type them into a wallet.',
  name: 'Name',
  chain: 'Chain ID',
  url: 'Chain node (RPC URL)',
  noUrl: 'none; choose one in your wallet',
  token: 'Token',
  steps: 'Set up',
  go: 'Set up my wallet',
  again: 'Do it again',
  step: {
    network: 'Add the network',
    token: 'Show the token',
    funds: 'Get test ether and tokens',
  },
  means: {
    network: 'The wallet then knows the chain and its node, and uses it for this page.',
    token: 'The wallet then shows your balance of the token that pays and backs tasks.',
    funds: (ether: string, tokens: string) =>
      `This is a development chain on your own machine. Its public faucet account sends you ${ether} ether and ${tokens} tokens. They have no value anywhere else.`,
  },
  state: { waits: '', runs: 'Confirm it in your wallet, if it asks.', done: 'Done.' },
  held: (ether: string, tokens: string) => `The account now has ${ether} ether and ${tokens} tokens.`,
  noFaucet: 'this chain’s node has no faucet account with enough tokens.',
  declinedToken: 'The wallet does not show the token. You can still use it.',
  next: 'Propose a task',
}
