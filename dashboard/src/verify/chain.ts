/** A round's record, from a chain node and nothing else. */
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
import { say } from '../strings'
import type { Step } from './core'
import { STATISTICS_ROUND, type Cohort, type Earlier, type RoundRecord, type Shown } from './record'

const words = say.verify

/** Whom to ask. */
export type Node = { name: string; url: string } | { name: string; request: EIP1193RequestFn }

export interface Read {
  steps: Step[]
  record: RoundRecord | null
}

const TIMEOUT = 20_000 // milliseconds
const MOST_QUERIES = 2_000 // for events: each covers the most blocks that the node gives at once
const MOST_BLOCKS = 3_000 // with all transactions
const MOST_SUMS = 600 // blobs of earlier rounds: each takes up to a second
const WIDTH = 8 // questions at once
const NO_HASH = `0x${'00'.repeat(32)}`

export async function readRound(node: Node, config: Config, task: number, round: number): Promise<Read> {
  const transport =
    'url' in node ? http(node.url, { batch: true, timeout: TIMEOUT }) : custom({ request: node.request })
  const client = createPublicClient({ transport })
  const reached = await reach(client, node.name, config)
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

async function reach(client: PublicClient, name: string, config: Config): Promise<Step> {
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
  return error instanceof Error ? error.message : String(error)
}

async function recordOf(
  client: PublicClient,
  config: Config,
  task: number,
  round: number,
): Promise<RoundRecord> {
  const block = await client.getBlockNumber()
  const at = { address: config.tasks, abi: tasksAbi, blockNumber: block } as const
  const of = [BigInt(task), BigInt(round)] as const
  if (BigInt(task) > (await client.readContract({ ...at, functionName: 'taskCount' })))
    throw new TaskUnknown()
  const [params, state, hospitals] = await Promise.all([
    client.readContract({ ...at, functionName: 'params', args: [of[0]] }),
    client.readContract({ ...at, functionName: 'roundState', args: of }),
    client.readContract({ ...at, functionName: 'hospitals', args: [of[0]] }),
  ])
  const logs = await eventsOf(client, config, of, block)
  const hasCanaries = params.canaries && round !== STATISTICS_ROUND
  const blobs = round === STATISTICS_ROUND ? params.statisticsBlobs : params.updateBlobs

  const members = await each(range(state.cohorts), (cohort) =>
    client.readContract({ ...at, functionName: 'cohortMembers', args: [...of, BigInt(cohort)] }),
  )
  const withSum = range(state.cohorts).filter((cohort) => has(state.viableCohorts, cohort))
  const places = withSum.flatMap((cohort) => range(blobs).map((blob) => [cohort, blob] as const))
  const held = await each(places, async ([cohort, blob]) => {
    const args = [...of, BigInt(cohort), BigInt(blob)] as const
    return [place(cohort, blob), await client.readContract({ ...at, functionName: 'expectedBlobHash', args })]
  })
  const expected = new Map(held as [string, Hex][])
  const published = new Map(
    logs
      .filter((log) => log.eventName === 'CohortPublished')
      .map(({ args }) => [place(Number(args.cohort), Number(args.blob)), args.versionedHash]),
  )
  const openings = logs.filter((log) => log.eventName === 'CohortOpened')
  const isOpened = new Set(openings.map(({ args }) => Number(args.cohort)))
  const nodes = new Map(hospitals.map((hospital, index) => [hospital.node, index]))
  const set = logs.find((log) => log.eventName === 'CanariesSet')?.args
  const starts = logs.filter(
    (log) => log.eventName === 'PhaseStarted' && PHASES[log.args.phase] === 'opening',
  )
  const [first, last] = [starts[0]?.blockNumber, openings.at(-1)?.blockNumber]
  const span = first != null && last != null ? { first, last } : null
  const tooMany = span !== null && span.last - span.first >= MOST_BLOCKS

  return {
    task,
    round,
    outcome: OUTCOMES[state.outcome] ?? 'pending',
    blobs,
    layout: { updateBits: params.updateBits, laneBits: params.laneBits },
    hospitals: hospitals.map(({ node, weight }) => ({ node, weight })),
    committed: indices(state.committed),
    isFixed: logs.some((log) => log.eventName === 'SurvivorsFixed'),
    cohorts: range(state.cohorts).map((index): Cohort => {
      const isIn = has(state.viableCohorts, index)
      const hashes = (known: Map<string, Hex>) =>
        range(blobs).map((blob) => {
          const hash = known.get(place(index, blob)) ?? null
          return hash === NO_HASH ? null : hash
        })
      return {
        index,
        members: indices(members[index] ?? 0n),
        survivors: isIn ? indices((members[index] ?? 0n) & state.survivors) : [],
        expected: hashes(expected),
        published: hashes(published),
        isDropped: has(state.droppedCohorts, index),
        isOpened: isOpened.has(index),
        isFlipped: has(state.turnedCohorts, index),
      }
    }),
    points: new Map(
      logs
        .filter((log) => log.eventName === 'UpdateCommitted')
        .map(({ args }) => [nodes.get(args.hospital) ?? -1, args.points]),
    ),
    hasCanaries,
    canaries: set ? { seedCommitment: set.seedCommitment, negatedDeltaDigest: set.retreat } : null,
    shown: span && !tooMany ? await shownIn(client, config, task, round, span) : [],
    openingBlocks: span && tooMany ? Number(span.last - span.first) + 1 : null,
    before:
      hasCanaries && [...isOpened].some((cohort) => has(state.turnedCohorts, cohort))
        ? await earlier(client, at, of, blobs, hospitals)
        : [],
    events: logs.length,
    block,
  }
}

interface At {
  address: Address
  abi: typeof tasksAbi
  blockNumber: bigint
}

/** The sums that training rounds before this one added to the model, or null: more than a page should ask for. */
async function earlier(
  client: PublicClient,
  at: At,
  [task, round]: readonly [bigint, bigint],
  blobs: number,
  hospitals: readonly { weight: number }[],
): Promise<Earlier[] | null> {
  const numbers = range(Number(round) - 1).map((index) => index + 1)
  const states = await each(numbers, async (number) => ({
    number,
    of: [task, BigInt(number)] as const,
    state: await client.readContract({ ...at, functionName: 'roundState', args: [task, BigInt(number)] }),
  }))
  const accepted = states.flatMap((one) =>
    indices(one.state.acceptedCohorts).map((cohort) => ({ ...one, cohort })),
  )
  if (accepted.length * blobs > MOST_SUMS) return null
  const sums = await each(accepted, async ({ number, of, state, cohort }) => {
    const args = [...of, BigInt(cohort)] as const
    const members = await client.readContract({ ...at, functionName: 'cohortMembers', args })
    const hashes = await each(range(blobs), (blob) =>
      client.readContract({ ...at, functionName: 'expectedBlobHash', args: [...args, BigInt(blob)] }),
    )
    const weights = indices(members & state.survivors).map((index) => hospitals[index]?.weight ?? 0)
    const weight = weights.reduce((sum, one) => sum + one, 0)
    return { number, sum: { cohort, weight, isFlipped: has(state.turnedCohorts, cohort), hashes } }
  })
  return numbers.map((number) => ({
    round: number,
    cohorts: sums.filter((one) => one.number === number).map((one) => one.sum),
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

/** The round's events, in as few questions as the node allows: where it refuses so many blocks, half as many are asked. */
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
 * What transactions that open this canary round say of its sums, refused ones too: no event and no state has it. What
 * another contract called in somebody's name is not found.
 */
async function shownIn(
  client: PublicClient,
  config: Config,
  task: number,
  round: number,
  span: Span,
): Promise<Shown[]> {
  const numbers = Array.from(
    { length: Number(span.last - span.first) + 1 },
    (_, at) => span.first + BigInt(at),
  )
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
    return null // anybody may send the contract anything
  }
}

/** Answers in order, a few asked at once. */
async function each<Item, Answer>(
  items: readonly Item[],
  ask: (item: Item) => Promise<Answer>,
): Promise<Answer[]> {
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

function place(cohort: number, blob: number): string {
  return `${cohort}/${blob}`
}
