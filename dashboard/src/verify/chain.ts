/** Reads a round's record from a chain node alone. */
import {
  BaseError,
  createPublicClient,
  custom,
  decodeFunctionData,
  getContract,
  hexToBytes,
  http,
  HttpRequestError,
  RpcError,
  TimeoutError,
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
import * as say from '../strings'
import type { Step } from './core'
import { blobsOf, MOST_EARLIER } from './plan'
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
const POINT_DIGITS = 96 // of a compressed commitment
const WIDTH = 8 // queries at once

function clientOf(node: Node): PublicClient {
  const transport =
    'url' in node ? http(node.url, { batch: true, timeout: TIMEOUT }) : custom({ request: node.request })
  return createPublicClient({ transport })
}

/** The chain's latest block, and a task's rounds at it. */
export interface Head {
  block: number
  hash: Hex
  rounds: number
  /** Rounds that are settled or void, ascending. */
  ended: number[]
  /** The number of blobs that the checks of each of them read. */
  blobs: number[]
}

/** Throws an error with words for people. */
export async function readHead(node: Node, config: Config, task: number): Promise<Head> {
  const client = clientOf(node)
  const reached = await connectionStep(client, node.name, config)
  if (reached.state !== 'holds') throw new Error(reached.lines.join(' '))
  try {
    const { number, hash } = await client.getBlock()
    const reader = taskReader(client, config.tasks, task, number)
    if (BigInt(task) > (await reader.taskCount())) throw new Error(words.noTask(task))
    const [terms, { round }] = await Promise.all([reader.params(), reader.state()])
    const states = await each(range(round + 1), async (one) => {
      const state = await reader.round(one)
      return { ...state, outcome: OUTCOMES[state.outcome], isVoid: OUTCOMES[state.outcome] === 'void' }
    })
    const ended = range(round + 1).filter((one) => states[one]?.outcome !== 'pending')
    const blobs = ended.map((one) => blobsOf(states, one, terms))
    return { block: Number(number), hash, rounds: terms.rounds, ended, blobs }
  } catch (error) {
    throw new Error(brief(error), { cause: error })
  }
}

export async function readRound(node: Node, config: Config, task: number, round: number): Promise<Read> {
  const client = clientOf(node)
  const reached = await connectionStep(client, node.name, config)
  if (reached.state !== 'holds') return { steps: [reached], record: null }
  try {
    return { steps: [reached], record: await recordOf(client, config, task, round) }
  } catch (error) {
    const isUnknown = error instanceof TaskUnknown
    const why = isUnknown ? words.noTask(task) : words.recordUnread(brief(error))
    const failed: Step = { key: 'record', title: words.record, state: isUnknown ? 'fails' : 'skipped', lines: [why] }
    return { steps: [reached, failed], record: null }
  }
}

class TaskUnknown extends Error {}

async function connectionStep(client: PublicClient, name: string, config: Config): Promise<Step> {
  const step = (state: 'fails' | 'skipped' | 'holds', line: string): Step => ({
    key: 'chain',
    title: words.chain,
    state,
    lines: [line],
  })
  try {
    const chainId = await client.getChainId()
    if (chainId !== config.chainId) return step('skipped', words.wrongChain(chainId, config.chainId))
    const code = await client.getCode({ address: config.tasks })
    if (code === undefined) return step('fails', words.noCode(config.tasks))
    return step('holds', words.chainHolds(chainId, config.tasks, name))
  } catch (error) {
    return step('skipped', words.unreachable(name, brief(error)))
  }
}

/** The reason why a node gave no answer. Its own text may be raw JSON, so it is left out. */
function brief(error: unknown): string {
  if (!(error instanceof BaseError)) return messageOf(error)
  const coded = error.walk((one) => one instanceof RpcError)
  if (coded instanceof RpcError) return words.code(Number(coded.code))
  const unanswered = error.walk((one) => one instanceof HttpRequestError || one instanceof TimeoutError)
  return unanswered ? words.noAnswer : error.shortMessage
}

/** Reads a task and its rounds, as the contract has them at one block. */
function taskReader(client: PublicClient, address: Address, task: number, block: bigint) {
  const { read } = getContract({ address, abi: tasksAbi, client })
  const id = BigInt(task)
  const at = { blockNumber: block }
  return {
    taskCount: () => read.taskCount(at),
    params: () => read.params([id], at),
    state: () => read.state([id], at),
    hospitals: () => read.hospitals([id], at),
    round: (round: number) => read.roundState([id, BigInt(round)], at),
    members: (round: number, cohort: number) => read.cohortMembers([id, BigInt(round), BigInt(cohort)], at),
    /** The hashes of a sum's blobs, in order. */
    hashes: (round: number, cohort: number, blobs: number) =>
      each(range(blobs), (blob) => read.expectedBlobHash([id, BigInt(round), BigInt(cohort), BigInt(blob)], at)),
  }
}

type TaskReader = ReturnType<typeof taskReader>
type RoundState = Awaited<ReturnType<TaskReader['round']>>
type Log = Awaited<ReturnType<typeof eventsOf>>[number]

async function recordOf(client: PublicClient, config: Config, task: number, round: number): Promise<RoundRecord> {
  const block = await client.getBlockNumber()
  const reader = taskReader(client, config.tasks, task, block)
  if (BigInt(task) > (await reader.taskCount())) throw new TaskUnknown()
  const [params, state, hospitals] = await Promise.all([reader.params(), reader.round(round), reader.hospitals()])
  const logs = await eventsOf(client, config, [BigInt(task), BigInt(round)], block)
  const hasDecoys = params.decoys && round !== STATISTICS_ROUND
  const blobs = round === STATISTICS_ROUND ? params.statisticsBlobs : params.updateBlobs
  const cohorts = await cohortsOf(reader, round, state, logs, blobs)
  const nodes = new Map(hospitals.map((hospital, index) => [hospital.node, index]))
  const set = logs.find((log) => log.eventName === 'DecoysSet')?.args
  const span = openingSpan(logs)
  const openingBlocks = span === null ? 0 : Number(span.last - span.first) + 1
  const tooMany = openingBlocks > MOST_BLOCKS
  return {
    chainId: config.chainId,
    contract: config.tasks,
    task,
    round,
    outcome: OUTCOMES[state.outcome] ?? 'pending',
    blobs,
    layout: { updateBits: params.updateBits, laneBits: params.laneBits },
    hospitals: hospitals.map(({ node, weight }) => ({ node, weight })),
    committed: indices(state.committed),
    isFixed: logs.some((log) => log.eventName === 'SurvivorsFixed'),
    cohorts,
    pointHashes: new Map(
      logs
        .filter((log) => log.eventName === 'UpdateCommitted')
        .map(({ args }) => [nodes.get(args.hospital) ?? -1, args.pointHashes]),
    ),
    points: pointsIn(logs, blobs),
    hasDecoys,
    decoys: set ? { seedCommitment: set.seedCommitment, negatedDeltaDigest: set.negatedDelta } : null,
    shown: span && !tooMany ? await shownIn(client, config, task, round, span) : [],
    openingBlocks: tooMany ? openingBlocks : null,
    before:
      hasDecoys && cohorts.some((cohort) => cohort.isDisclosed && cohort.isFlipped)
        ? await earlier(reader, round, blobs, hospitals)
        : [],
    events: logs.length,
    block,
  }
}

async function cohortsOf(
  reader: TaskReader,
  round: number,
  state: RoundState,
  logs: readonly Log[],
  blobs: number,
): Promise<Cohort[]> {
  const published = new Map(
    logs
      .filter((log) => log.eventName === 'CohortPublished')
      .map(({ args }) => [`${args.cohort}/${args.blob}`, args.versionedHash]),
  )
  const disclosed = new Set(
    logs.filter((log) => log.eventName === 'CohortDisclosed').map(({ args }) => Number(args.cohort)),
  )
  return await each(range(state.cohorts), async (index): Promise<Cohort> => {
    const members = await reader.members(round, index)
    const hasSum = has(state.viableCohorts, index)
    const expected = hasSum ? await reader.hashes(round, index, blobs) : []
    return {
      index,
      members: indices(members),
      survivors: hasSum ? indices(members & state.survivors) : [],
      expected: range(blobs).map((blob) => known(expected[blob])),
      published: range(blobs).map((blob) => known(published.get(`${index}/${blob}`))),
      isDropped: has(state.droppedCohorts, index),
      isDisclosed: disclosed.has(index),
      isFlipped: has(state.flippedCohorts, index),
    }
  })
}

function pointsIn(logs: readonly Log[], blobs: number): RoundRecord['points'] {
  const found = new Map<number, (Hex | null)[]>()
  for (const { args } of logs.filter((log) => log.eventName === 'PointsShown'))
    hexToBytes(args.hospitals).forEach((index, at) => {
      const own = found.get(index) ?? range(blobs).map(() => null)
      own[Number(args.blob)] = `0x${args.points.slice(2).slice(at * POINT_DIGITS, (at + 1) * POINT_DIGITS)}`
      found.set(index, own)
    })
  return found
}

function known(hash: Hex | undefined): Hex | null {
  return hash === undefined || hash === zeroHash ? null : hash
}

/** The blocks from the start of the phase that discloses decoys to the last disclosure. */
function openingSpan(logs: readonly Log[]): Span | null {
  const start = logs.find((log) => log.eventName === 'PhaseStarted' && PHASES[log.args.phase] === 'disclosing')
  const end = logs.findLast((log) => log.eventName === 'CohortDisclosed')
  const [first, last] = [start?.blockNumber, end?.blockNumber]
  return first != null && last != null ? { first, last } : null
}

/** The sums that earlier training rounds added to the model; null if they are too many for a page to read. */
async function earlier(
  reader: TaskReader,
  before: number,
  blobs: number,
  hospitals: readonly { weight: number }[],
): Promise<Earlier[] | null> {
  const rounds = await each(range(before - 1), async (index) => {
    const state = await reader.round(index + 1)
    return { round: index + 1, state, accepted: indices(state.acceptedCohorts) }
  })
  if (rounds.reduce((sum, { accepted }) => sum + accepted.length, 0) * blobs > MOST_EARLIER) return null
  return await each(rounds, async ({ round, state, accepted }) => ({
    round,
    cohorts: await each(accepted, async (cohort) => {
      const members = await reader.members(round, cohort)
      const hashes = await reader.hashes(round, cohort, blobs)
      const weights = indices(members & state.survivors).map((index) => hospitals[index]?.weight ?? 0)
      const weight = weights.reduce((sum, one) => sum + one, 0)
      return { cohort, weight, isFlipped: has(state.flippedCohorts, cohort), hashes }
    }),
  }))
}

const NAMES = [
  'PhaseStarted',
  'UpdateCommitted',
  'PointsShown',
  'SurvivorsFixed',
  'DecoysSet',
  'CohortPublished',
  'CohortDisclosed',
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
  for (let queries = 0; first <= last; queries++) {
    if (queries === MOST_QUERIES) throw new Error(words.manyQueries(MOST_QUERIES))
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
 * The disclosures of this round's sums in transactions, also in reverted ones. No event and no state has them. Calls that
 * another contract passed on are not found.
 */
async function shownIn(
  client: PublicClient,
  config: Config,
  task: number,
  round: number,
  span: Span,
): Promise<Shown[]> {
  const numbers = range(Number(span.last - span.first) + 1).map((at) => span.first + BigInt(at))
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
  if (call?.functionName !== 'discloseDecoys') return []
  const [taskId, number, cohort, firstBlob, seed, negatedDelta, disclosed] = call.args
  if (taskId !== BigInt(task) || number !== BigInt(round)) return []
  return disclosed.map(({ first, second }, at) => ({
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
