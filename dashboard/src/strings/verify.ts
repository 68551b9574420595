/** Texts of the checks that a browser does of a round. */
import { formatFixed } from '../lib/amounts'

export const verify = {
  steps: 'Steps',
  state: { holds: 'holds', fails: 'FAILS', waits: 'not yet', skipped: 'not checked', running: 'running…' },
  mark: { holds: '✓', fails: '✗', waits: '…', skipped: '–', running: '›' },
  node: 'Chain node',
  nodeOfSite: (host: string) => `the node that this site names (${host})`,
  nodeOfWallet: (name: string) => `the node of your wallet (${name})`,
  wallet: 'in the browser',
  again: 'Verify again',
  noNode:
    'This site names no chain node, and the browser has no wallet with one. Connect a wallet, or use the command line below.',
  asking: 'Reading the round’s record from the chain',
  verdict: {
    running: 'Verifying…',
    holds: 'All checks hold.',
    unchecked: 'Could not check: this says nothing about the round, good or bad. See the steps.',
    partly: 'No check fails, but some could not be done. See the steps.',
    fails: 'A check FAILS. Do not rely on this round until you know why.',
  },
  took: (seconds: number) => `It took ${formatFixed(seconds, 1)} s.`,
  not: 'These checks do not prove how hospitals trained, or that scores and payments are right. They trust the chain node for the state of the chain. They trust this site for the contracts’ addresses and for the code of the checks. For the full check, run this on your own machine:',
  command: (task: number, round: number) => `consilium verify ${task} ${round}`,

  chain: 'The node is on the chain and has the contracts',
  chainHolds: (id: number, contract: string, node: string) =>
    `The node is ${node}, on chain ${id}, with code at ${contract}. Compare this address with one from another source.`,
  wrongChain: (given: number, wanted: number) =>
    `The node is on chain ${given}, but the contracts are on chain ${wanted}. Switch the wallet’s network.`,
  noCode: (contract: string) => `There is no contract at ${contract} on this chain.`,
  unreachable: (node: string, why: string) =>
    `This could not be asked of ${node}: ${why}. Choose another node, or try again later.`,

  record: 'The round’s record is complete',
  recordHolds: (events: number, block: bigint, hospitals: number, survivors: number) =>
    `Read from ${events} events, and from the contract at block ${block}: ${hospitals} hospitals committed, and ${survivors} are in the sums.`,
  recordUnread: (why: string) => `The record could not be read, so nothing in it was checked: ${why}`,
  noAnswer: 'the node does not answer',
  code: (code: number) => `the node reports a fault (code ${code})`,
  manyQueries: (most: number) =>
    `the node answers for so few blocks at once that ${most} queries are not enough. Use another node.`,
  noTask: (task: number) => `The contract has no task ${task}.`,
  notBegun: 'This round has not begun.',
  notFixed: 'The survivors are not fixed yet.',
  noPoints: (hospital: string, given: number, wanted: number) =>
    `The events hold ${given} commitments of ${hospital}. A sum of ${wanted} blobs needs ${wanted}.`,
  notCommitted: (hospital: string) => `${hospital} is in the sums, but has no commitment in the contract.`,
  void: 'The round is void, so it does not change the model.',
  noCohorts: 'No cohort of this round has a sum.',

  decoys: 'The sign-flipped sums were fixed before publication',
  decoysHolds: 'The seed matches its commitment, and gives the same sign-flipped sums as the chain.',
  decoysWait: 'The aggregator discloses them after the reveals.',
  decoysUnset: 'The aggregator has not committed to them yet.',
  noSeed:
    'No transaction to the contract shows the seed, because another contract passed it on. Only the contract has checked it.',
  manyBlocks: (blocks: number) =>
    `The seed is in one of ${blocks} blocks, too many for a page to read. Only the contract has checked it.`,
  flippedWrong: (cohort: number, onChain: boolean) =>
    `Cohort ${cohort} is ${onChain ? '' : 'not '}sign-flipped on the chain, but ${onChain ? 'not ' : ''}by the seed.`,

  negatedDelta: 'The negated delta of sign-flipped sums',
  negatedDeltaUnused: 'No sum of this round was sign-flipped, so there is no negated delta.',
  negatedDeltaFirst: 'The first round has no rounds before it, and its negated delta is zero.',
  negatedDeltaWrong: (blob: number) => `Blob ${blob}: the negated delta does not follow from the rounds before.`,
  negatedDeltaHolds: (rounds: number) =>
    `It was derived again from all sums of ${rounds === 1 ? 'the round' : `the ${rounds} rounds`} before. Each sum has the hash that the contract holds.`,
  negatedDeltaReading: (round: number, last: number) => `Reading the sums of round ${round} of ${last}.`,
  negatedDeltaBeyond:
    'It matches. But a hospital used lanes beyond the numbers of an update, and only the server says how many numbers there are. The command line derives this number from the task file.',
  negatedDeltaLater:
    'The aggregator committed to it before publication. There are too many earlier rounds to read here. The committee checked it, and the command line can check it again.',
  inRound: (round: number, cohort: number, what: string) => `Round ${round}, cohort ${cohort}: ${what}`,

  sum: (cohort: number) => `Cohort ${cohort}: the commitments add up to the contract’s sum`,
  sumHolds: (survivors: number, weight: bigint, blobs: number) =>
    `The commitments of ${survivors} hospitals have the hashes to which these committed. With a total weight of ${weight} they give ${blobs === 1 ? 'its hash' : `the hashes of its ${blobs} blobs`}.`,
  sumFlipped: 'It was published sign-flipped, to test the committee.',
  sumWaits: (blob: number) => `Blob ${blob}: the contract has not added it up yet.`,
  sumUndisclosed: (blob: number) =>
    `Blob ${blob}: this cannot be compared before the aggregator discloses which sums are sign-flipped.`,
  sumUnshown: (blob: number) =>
    `Blob ${blob}: no transaction to the contract shows its blinders, and without them every sum matches. Only the contract has checked it.`,
  sumDiffers: (blob: number, held: string, given: string) =>
    `Blob ${blob}: the contract holds ${held}, but the survivors’ commitments give ${given}.`,
  eventDiffers: (blob: number, held: string, event: string) =>
    `Blob ${blob}: the contract holds ${held}, but the publication’s event says ${event}.`,
  pointUnshown: (blob: number, hospital: string) => `Blob ${blob}: no event shows the commitment of ${hospital}.`,
  pointDiffers: (blob: number, hospital: string) =>
    `Blob ${blob}: the shown commitment of ${hospital} does not have the hash to which it committed.`,
  dropped: (cohort: number) => `Cohort ${cohort} has no sum: the aggregator dropped it.`,
  malformed: (why: string) => `The events hold an invalid commitment: ${why}`,
  sums: 'The sums',
  crash: 'The checks themselves',
  noWorker: 'The browser could not start them.',

  blob: (cohort: number) => `Cohort ${cohort}: the published blobs are that sum`,
  blobHolds: (blobs: number) =>
    blobs === 1
      ? 'The blob was fetched and committed to again, and gives the same hash.'
      : `${blobs} blobs were fetched and committed to again, and give the same hashes.`,
  blobWaits: (blob: number) => `Blob ${blob} is not published yet.`,
  blobMissing: (blob: number, hash: string) => `Blob ${blob}: this mirror does not have ${hash}.`,
  blobUnreachable: (blob: number, why: string) => `Blob ${blob}: the mirror does not answer: ${why}`,
  blobLength: (blob: number, bytes: number) => `Blob ${blob}: it has ${bytes} bytes, and a blob has 131072.`,
  blobScalar: (blob: number, at: number) =>
    `Blob ${blob}: this is not a blob, because field element ${at} is not below the group’s order.`,
  blobDiffers: (blob: number, held: string, given: string) =>
    `Blob ${blob}: the contract holds ${held}, but the mirror’s blob commits to ${given}. It is damaged or was tampered with.`,
  ceremony: 'The points of Ethereum’s KZG ceremony',
  ceremonyUnread: (why: string) => `They could not be loaded from this site: ${why}`,
  ceremonyFails: (why: string) => `This site gives other points: ${why}`,
  otherPoints: 'the points are not those of Ethereum’s ceremony: their SHA-256 differs',
  notPoint: (raw: string) => `${raw} is not a point of BLS12-381’s G1`,
  ceremonyHolds: '4096 points, with the SHA-256 of the ceremony.',
}
