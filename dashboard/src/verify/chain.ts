/** Reads a round's record from a chain node alone. */
import {
  BaseError,
  createPublicClient,
  custom,
  decodeFunctionData,
  http,
  HttpRequestError,
  numberToHex,
  parseEventLogs,
  toEventSelector,
  zeroHash,
  type AbiEvent,
  type Address,
  type EIP1193RequestFn,
  type Hex,
  type PublicClient,
  type RpcLog,
  formatLog,
} from 'viem'
import type { Config } from '../api/config'
import { tasksAbi } from '../generated/abi'
import { OUTCOMES, PHASES } from '../lib/enums'
import { messageOf } from '../lib/errors'
import { say } from '../strings'
import type { Step } from './core'
import { STATISTICS_ROUND, type Cohort, type Earlier, type RoundRecord, type Shown } from './record'

const words = say.verify

/** A chain node: by its URL, or through a wallet. */
export type Node = { name: string; url: string } | { name: string; request: EIP1193RequestFn }

export interface Read {
  steps: Step[]
  record: RoundRecord | null
}

const TIMEOUT = 20_000 // milliseconds
const MOST_QUERIES = 2_000 // for events
const MOST_BLOCKS = 3_000 // read with all their transactions
const MOST_SUMS = 600 // blobs of earlier rounds: each takes up to a second
const WIDTH = 8 // queries at once

export async function readRound(node: Node, config: Config, task: number, round: number): Promise<Read> {
  const transport =
    'url' in node ? http(node.url, { batch: true, timeout: TIMEOUT }) : custom({ request: node.request })
  const client = createPublicClient({ transport })
  const reached = await connectionStep(client, node.name, config)
  if (reached.state !== 'holds') return { steps: [reached], record: null }
  try {
    return { steps: [reached], record: await recordOf(client, config, task, round) }
  } catch (error) {
    const why = error instanceof TaskUnknown ? words.noTask(task) : words.recordFails(brief(error))
    const failed: Step = { key: 'record', title: words.record, state: 'fails', lines: [why] }
    return { steps: [reached, failed], record: null }
  }
}

class TaskUnknown extends Error {}

async function connectionStep(client: PublicClient, name: string, config: Config): Promise<Step> {
  const said = (state: 'fails' | 'holds', line: string): Step => ({
    key: 'chain',
    title: words.chain,
    state,
    lines: [line],
  })
  try {
    const given = await client.getChainId()
    if (given !== config.chainId) return said('fails', words.wrongChain(given, config.chainId))
    const code = await client.getCode({ address: config.tasks })
    if (code === undefined) return said('fails', words.noCode(config.tasks))
    return said('holds', words.chainHolds(given, config.tasks, name))
  } catch (error) {
    return said('fails', words.unreachable(name, brief(error)))
  }
}

function brief(error: unknown): string {
  if (error instanceof BaseError) return error.details || error.shortMessage
  return messageOf(error)
}

/** A round as the contract has it at one block. */
class Contract {
  readonly task: number
  readonly round: number
  readonly block: bigint
  private readonly client: PublicClient
  private readonly at: { address: Address; abi: typeof tasksAbi; blockNumber: bigint }

  constructor(client: PublicClient, address: Address, task: number, round: number, block: bigint) {
    this.client = client
    this.task = task
    this.round = round
    this.block = block
    this.at = { address, abi: tasksAbi, blockNumber: block }
  }

  async read() {
    const { client, at } = this
    const id = BigInt(this.task)
    if (id > (await client.readContract({ ...at, functionName: 'taskCount' }))) throw new TaskUnknown()
    const [params, state, hospitals] = await Promise.all([
      client.readContract({ ...at, functionName: 'params', args: [id] }),
      this.stateOf(this.round),
      client.readContract({ ...at, functionName: 'hospitals', args: [id] }),
    ])
    return { params, state, hospitals }
  }

  stateOf(round: number) {
    return this.client.readContract({
      ...this.at,
      functionName: 'roundState',
      args: [BigInt(this.task), BigInt(round)],
    })
  }

  membersOf(round: number, cohort: number): Promise<bigint> {
    const args = [BigInt(this.task), BigInt(round), BigInt(cohort)] as const
    return this.client.readContract({ ...this.at, functionName: 'cohortMembers', args })
  }

  /** The hashes of a sum's blobs, in order. */
  hashesOf(round: number, cohort: number, blobs: number): Promise<Hex[]> {
    return each(range(blobs), (blob) => {
      const args = [BigInt(this.task), BigInt(round), BigInt(cohort), BigInt(blob)] as const
      return this.client.readContract({ ...this.at, functionName: 'expectedBlobHash', args })
    })
  }
}

type Found = Awaited<ReturnType<Contract['read']>>
type Log = Awaited<ReturnType<typeof eventsOf>>[number]

async function recordOf(client: PublicClient, config: Config, task: number, round: number): Promise<RoundRecord> {
  const contract = new Contract(client, config.tasks, task, round, await client.getBlockNumber())
  const found = await contract.read()
  const { params, state, hospitals } = found
  const logs = await eventsOf(client, config, [BigInt(task), BigInt(round)], contract.block)
  const hasCanaries = params.canaries && round !== STATISTICS_ROUND
  const blobs = round === STATISTICS_ROUND ? params.statisticsBlobs : params.updateBlobs
  const cohorts = await cohortsOf(contract, found, logs, blobs)
  const nodes = new Map(hospitals.map((hospital, index) => [hospital.node, index]))
  const set = logs.find((log) => log.eventName === 'CanariesSet')?.args
  const span = openingSpan(logs)
  const openingBlocks = span === null ? 0 : Number(span.last - span.first) + 1
  const tooMany = openingBlocks > MOST_BLOCKS
  return {
    task,
    round,
    outcome: OUTCOMES[state.outcome] ?? 'pending',
    blobs,
    layout: { updateBits: params.updateBits, laneBits: params.laneBits },
    hospitals: hospitals.map(({ node, weight }) => ({ node, weight })),
    committed: indices(state.committed),
    isFixed: logs.some((log) => log.eventName === 'SurvivorsFixed'),
    cohorts,
    points: new Map(
      logs
        .filter((log) => log.eventName === 'UpdateCommitted')
        .map(({ args }) => [nodes.get(args.hospital) ?? -1, args.points]),
    ),
    hasCanaries,
    canaries: set ? { seedCommitment: set.seedCommitment, negatedDeltaDigest: set.retreat } : null,
    shown: span && !tooMany ? await shownIn(client, config, task, round, span) : [],
    openingBlocks: tooMany ? openingBlocks : null,
    before:
      hasCanaries && cohorts.some((cohort) => cohort.isOpened && cohort.isFlipped)
        ? await earlier(contract, blobs, hospitals)
        : [],
    events: logs.length,
    block: contract.block,
  }
}

async function cohortsOf(contract: Contract, { state }: Found, logs: readonly Log[], blobs: number): Promise<Cohort[]> {
  const published = new Map(
    logs
      .filter((log) => log.eventName === 'CohortPublished')
      .map(({ args }) => [`${args.cohort}/${args.blob}`, args.versionedHash]),
  )
  const opened = new Set(logs.filter((log) => log.eventName === 'CohortOpened').map(({ args }) => Number(args.cohort)))
  return await each(range(state.cohorts), async (index): Promise<Cohort> => {
    const members = await contract.membersOf(contract.round, index)
    const hasSum = has(state.viableCohorts, index)
    const expected = hasSum ? await contract.hashesOf(contract.round, index, blobs) : []
    return {
      index,
      members: indices(members),
      survivors: hasSum ? indices(members & state.survivors) : [],
      expected: range(blobs).map((blob) => known(expected[blob])),
      published: range(blobs).map((blob) => known(published.get(`${index}/${blob}`))),
      isDropped: has(state.droppedCohorts, index),
      isOpened: opened.has(index),
      isFlipped: has(state.turnedCohorts, index),
    }
  })
}

function known(hash: Hex | undefined): Hex | null {
  return hash === undefined || hash === zeroHash ? null : hash
}

/** The blocks from the start of the phase that discloses canaries to the last disclosure. */
function openingSpan(logs: readonly Log[]): Span | null {
  const start = logs.find((log) => log.eventName === 'PhaseStarted' && PHASES[log.args.phase] === 'opening')
  const end = logs.findLast((log) => log.eventName === 'CohortOpened')
  const [first, last] = [start?.blockNumber, end?.blockNumber]
  return first != null && last != null ? { first, last } : null
}

/** The sums that earlier training rounds added to the model; null if they are too many for a page to read. */
async function earlier(
  contract: Contract,
  blobs: number,
  hospitals: readonly { weight: number }[],
): Promise<Earlier[] | null> {
  const rounds = await each(range(contract.round - 1), async (index) => {
    const state = await contract.stateOf(index + 1)
    return { round: index + 1, state, accepted: indices(state.acceptedCohorts) }
  })
  if (rounds.reduce((sum, { accepted }) => sum + accepted.length, 0) * blobs > MOST_SUMS) return null
  return await each(rounds, async ({ round, state, accepted }) => ({
    round,
    cohorts: await each(accepted, async (cohort) => {
      const members = await contract.membersOf(round, cohort)
      const hashes = await contract.hashesOf(round, cohort, blobs)
      const weights = indices(members & state.survivors).map((index) => hospitals[index]?.weight ?? 0)
      const weight = weights.reduce((sum, one) => sum + one, 0)
      return { cohort, weight, isFlipped: has(state.turnedCohorts, cohort), hashes }
    }),
  }))
}

const NAMES = [
  'PhaseStarted',
  'UpdateCommitted',
  'SurvivorsFixed',
  'CanariesSet',
  'CohortPublished',
  'CohortOpened',
] as const
const EVENTS = tasksAbi.filter((entry) => entry.type === 'event') as readonly AbiEvent[]
const TOPICS = NAMES.map((name) => {
  const found = EVENTS.find((event) => event.name === name)
  if (!found) throw new Error(`the contract has no event ${name}`)
  return toEventSelector(found)
})

/** The round's events, in few queries: if the node refuses so many blocks, the next query is for half as many. */
async function eventsOf(client: PublicClient, config: Config, of: readonly [bigint, bigint], last: bigint) {
  const topics: (Hex | Hex[])[] = [TOPICS, ...of.map((number) => numberToHex(number, { size: 32 }))]
  const found: RpcLog[] = []
  let first = config.firstBlock
  let span = last - first + 1n
  for (let asked = 0; first <= last; asked++) {
    if (asked === MOST_QUERIES) throw new Error(words.manyQueries(MOST_QUERIES))
    const end = first + span - 1n < last ? first + span - 1n : last
    const filter = { address: config.tasks, topics, fromBlock: numberToHex(first), toBlock: numberToHex(end) }
    try {
      found.push(...(await client.request({ method: 'eth_getLogs', params: [filter] }, { retryCount: 0 })))
      first = end + 1n
    } catch (error) {
      if (span === 1n || isUnreachable(error)) throw error
      span = (span + 1n) / 2n
    }
  }
  return parseEventLogs({ abi: tasksAbi, eventName: [...NAMES], logs: found.map((log) => formatLog(log)) })
}

function isUnreachable(error: unknown): boolean {
  const cause = error instanceof BaseError ? error.walk((one) => one instanceof HttpRequestError) : null
  return cause instanceof HttpRequestError && cause.status === undefined
}

interface Span {
  first: bigint
  last: bigint
}

/**
 * What the transactions that disclose this round's canaries say of its sums, reverted ones too. No event and no state has
 * it. Calls that another contract passed on are not found.
 */
async function shownIn(
  client: PublicClient,
  config: Config,
  task: number,
  round: number,
  span: Span,
): Promise<Shown[]> {
  const numbers = Array.from({ length: Number(span.last - span.first) + 1 }, (_, at) => span.first + BigInt(at))
  const found = await each(numbers, async (blockNumber) => {
    const { transactions } = await client.getBlock({ blockNumber, includeTransactions: true })
    return transactions
      .filter((sent) => sent.to?.toLowerCase() === config.tasks.toLowerCase())
      .flatMap((sent) => shownBy(sent.input, task, round))
  })
  return found.flat()
}

function shownBy(input: Hex, task: number, round: number): Shown[] {
  const call = decoded(input)
  const calls = call?.functionName === 'multicall' ? call.args[0].map(decoded) : [call]
  return calls.flatMap((one) => shownByCall(one, task, round))
}

function shownByCall(call: ReturnType<typeof decoded>, task: number, round: number): Shown[] {
  if (call?.functionName !== 'openCanaries') return []
  const [taskId, number, cohort, firstBlob, seed, negatedDelta, opened] = call.args
  if (taskId !== BigInt(task) || number !== BigInt(round)) return []
  return opened.map(({ first, second }, at) => ({
    cohort: Number(cohort),
    blob: Number(firstBlob) + at,
    seed,
    negatedDelta,
    first,
    second,
  }))
}

function decoded(input: Hex) {
  try {
    return decodeFunctionData({ abi: tasksAbi, data: input })
  } catch {
    return null // anybody may send any data to the contract
  }
}

/** The answers in order, with a few queries at once. */
async function each<Item, Answer>(items: readonly Item[], ask: (item: Item) => Promise<Answer>): Promise<Answer[]> {
  const answers = new Array<Answer>(items.length)
  let next = 0
  const work = async () => {
    for (let at = next++; at < items.length; at = next++) answers[at] = await ask(items[at] as Item)
  }
  await Promise.all(range(Math.min(WIDTH, items.length)).map(work))
  return answers
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

function has(map: bigint, index: number): boolean {
  return ((map >> BigInt(index)) & 1n) === 1n
}

function indices(map: bigint): number[] {
  return range(256).filter((index) => has(map, index))
}
