import {
  concat,
  decodeFunctionData,
  encodeAbiParameters,
  encodeEventTopics,
  encodeFunctionData,
  encodeFunctionResult,
  getAddress,
  numberToHex,
  type Abi,
  type AbiEvent,
  type EIP1193RequestFn,
  type Hex,
} from 'viem'
import { describe, expect, it } from 'vitest'
import type { Config } from '../src/api/config'
import { tasksAbi } from '../src/generated/abi'
import { readRound, type Read } from '../src/verify/chain'

const TASKS = getAddress(`0x${'c0'.repeat(20)}`)
const HOSPITALS = [1, 2, 3].map((index) => getAddress(numberToHex(index, { size: 20 })))
const [TASK, ROUND] = [4, 2]
const [TASK_ID, NUMBER] = [BigInt(TASK), BigInt(ROUND)]
const LAST = 1_000n
const ABI: Abi = tasksAbi // whose calls are not known to the compiler by their names
const [FIRST, LAST_POINT]: [Hex, Hex] = [`0x${'a1'.repeat(48)}`, `0x${'c3'.repeat(48)}`]
const HASHES = HOSPITALS.map((_, index): Hex => `0x${(index + 1).toString().repeat(64)}`)
const HASH: Hex = `0x01${'ab'.repeat(31)}`
const SEED: Hex = `0x${'5e'.repeat(32)}`
const DIGEST: Hex = `0x${'d1'.repeat(32)}`
const NEGATED_DELTA: Hex = `0x${'11'.repeat(128)}`

const config: Config = {
  chainId: 31337,
  chainUrl: null,
  blobs: true,
  hasExample: false,
  firstBlock: 0n,
  tasks: TASKS,
  staking: TASKS,
  token: TASKS,
  modelShares: TASKS,
  predictionServers: null,
}

interface Log {
  block: bigint
  name: string
  indexed: Record<string, unknown>
  data: readonly unknown[]
}

const OF = { taskId: TASK_ID, round: NUMBER }
const LOGS: Log[] = [
  ...HOSPITALS.map((hospital, index) => ({
    block: 10n,
    name: 'UpdateCommitted',
    indexed: { ...OF, hospital },
    data: [[HASHES[index]], DIGEST, DIGEST],
  })),
  { block: 12n, name: 'SurvivorsFixed', indexed: OF, data: [0b101n] },
  { block: 12n, name: 'DecoysSet', indexed: OF, data: [SEED, DIGEST] },
  { block: 13n, name: 'CohortPublished', indexed: OF, data: [0n, 0n, HASH] },
  { block: 700n, name: 'PhaseStarted', indexed: OF, data: [10, 99n] },
  { block: 705n, name: 'PointsShown', indexed: OF, data: [0n, 0n, '0x0200', concat([LAST_POINT, FIRST])] },
  { block: 705n, name: 'CohortDisclosed', indexed: OF, data: [0n, true] },
  { block: 706n, name: 'CohortDisclosed', indexed: { ...OF, round: 3n }, data: [0n, false] }, // of another round
]

const commitments = { order: '0x020100', others: HASHES.slice(1, 2), points: '0x' } as const

function disclosure(first: bigint, task = TASK_ID): Hex {
  return encodeFunctionData({
    abi: tasksAbi,
    functionName: 'discloseDecoys',
    args: [task, NUMBER, 0n, 0n, SEED, NEGATED_DELTA, [{ first, second: 9n, commitments }]],
  })
}

const SENT: Record<string, { to: Hex | null; input: Hex }[]> = {
  '700': [
    { to: TASKS, input: disclosure(1n) },
    { to: HOSPITALS[0] ?? null, input: disclosure(2n) }, // to another contract
    { to: TASKS, input: '0xdeadbeef' },
    { to: null, input: '0x' },
  ],
  '703': [
    {
      to: TASKS,
      input: encodeFunctionData({
        abi: tasksAbi,
        functionName: 'multicall',
        args: [['0x01', disclosure(3n), disclosure(4n, 5n)]],
      }),
    },
  ],
  '706': [{ to: TASKS, input: disclosure(5n) }], // after the last cohort was disclosed
}

/** A node that answers as a chain with this one round would. */
function nodeOf(limits: { blocks?: bigint; chainId?: number; code?: Hex; logs?: Log[] } = {}) {
  const asked: string[] = []
  const answer = (method: string, params: readonly unknown[]): unknown => {
    switch (method) {
      case 'eth_chainId':
        return numberToHex(limits.chainId ?? 31337)
      case 'eth_getCode':
        return limits.code ?? '0x60'
      case 'eth_blockNumber':
        return numberToHex(LAST)
      case 'eth_call':
        return called((params[0] as { data: Hex }).data)
      case 'eth_getLogs':
        return found(params[0] as Filter, limits.blocks ?? LAST * 2n, limits.logs ?? LOGS)
      case 'eth_getBlockByNumber': {
        const number = String(BigInt(params[0] as Hex))
        return {
          number: params[0],
          transactions: (SENT[number] ?? []).map((one) => ({ ...one, value: '0x0', type: '0x2' })),
        }
      }
      default:
        throw new Error(`nobody should ask ${method}`)
    }
  }
  const request = ({ method, params }: { method: string; params?: unknown }) => {
    asked.push(method)
    return new Promise<unknown>((resolve) => resolve(answer(method, (params ?? []) as unknown[])))
  }
  return { name: 'a node', request: request as EIP1193RequestFn, asked }
}

interface Filter {
  fromBlock: Hex
  toBlock: Hex
  topics: [Hex[], Hex, Hex]
}

function found({ fromBlock, toBlock, topics }: Filter, most: bigint, logs: Log[]) {
  const [first, last] = [BigInt(fromBlock), BigInt(toBlock)]
  if (last - first + 1n > most) throw Object.assign(new Error('too many blocks'), { code: -32005 })
  return logs
    .map((log, at) => {
      const event = tasksAbi.find((one) => one.type === 'event' && one.name === log.name) as AbiEvent
      const plain = event.inputs.filter((input) => input.indexed !== true)
      return {
        address: TASKS,
        blockNumber: numberToHex(log.block),
        logIndex: numberToHex(at),
        topics: encodeEventTopics({ abi: [event], eventName: log.name, args: log.indexed }) as Hex[],
        data: encodeAbiParameters(plain, log.data),
        removed: false,
      }
    })
    .filter((log) => BigInt(log.blockNumber) >= first && BigInt(log.blockNumber) <= last)
    .filter(({ topics: [event, task, round] }) => {
      const fits = event !== undefined && topics[0].includes(event)
      return fits && task === topics[1] && round === topics[2]
    })
}

function called(data: Hex): Hex {
  const { functionName, args } = decodeFunctionData({ abi: ABI, data })
  const encoded = (result: unknown) => encodeFunctionResult({ abi: ABI, functionName, result })
  switch (functionName) {
    case 'taskCount':
      return encoded(4n)
    case 'params':
      return encoded({ ...zeros('params'), decoys: true, updateBits: 8, laneBits: 16, updateBlobs: 1 })
    case 'roundState':
      return encoded({
        ...zeros('roundState'),
        outcome: 1,
        cohorts: 2,
        members: 0b111n,
        committed: 0b111n,
        viableCohorts: 0b01n,
        droppedCohorts: 0b10n,
        flippedCohorts: 0b01n,
        acceptedCohorts: 0b01n,
        survivors: 0b101n,
      })
    case 'hospitals':
      return encoded(HOSPITALS.map((node, index) => ({ node, weight: index + 1, bond: 0n })))
    case 'cohortMembers':
      return encoded(args?.[2] === 0n ? 0b101n : 0b010n)
    case 'expectedBlobHash':
      return encoded(HASH)
    default:
      throw new Error(`nobody should call ${functionName}`)
  }
}

/** A struct that a view answers with, all of it zero. */
function zeros(view: 'params' | 'roundState'): Record<string, unknown> {
  const entry = tasksAbi.find((one) => one.type === 'function' && one.name === view)
  const output = entry?.type === 'function' ? entry.outputs[0] : undefined
  if (!output || !('components' in output)) throw new Error('it answers with a struct')
  return Object.fromEntries(
    output.components.map(({ name, type }) => [
      name,
      type === 'bool'
        ? false
        : type === 'address'
          ? `0x${'00'.repeat(20)}`
          : type === 'bytes32'
            ? `0x${'00'.repeat(32)}`
            : type.endsWith('[]')
              ? []
              : /^u?int(8|16|32)$/.test(type)
                ? 0
                : 0n,
    ]),
  )
}

function lines(read: Read): string {
  return read.steps.map(({ key, state, lines: [line] }) => `${key} ${state} ${line ?? ''}`).join('\n')
}

describe('a record', () => {
  it('is what contract, events and calldata say', async () => {
    const { steps, record } = await readRound(nodeOf(), config, TASK, ROUND)
    expect(steps.map((step) => step.state)).toEqual(['holds'])
    expect(record).toMatchObject({
      chainId: 31337,
      contract: TASKS,
      outcome: 'settled',
      blobs: 1,
      committed: [0, 1, 2],
      isFixed: true,
      hasDecoys: true,
      decoys: { seedCommitment: SEED, negatedDeltaDigest: DIGEST },
      openingBlocks: null,
      before: [{ round: 1, cohorts: [{ cohort: 0, weight: 4, isFlipped: true, hashes: [HASH] }] }],
      events: 9,
      block: LAST,
    })
    expect(record?.cohorts).toEqual([
      {
        index: 0,
        members: [0, 2],
        survivors: [0, 2],
        expected: [HASH],
        published: [HASH],
        isDropped: false,
        isDisclosed: true,
        isFlipped: true,
      },
      {
        index: 1,
        members: [1],
        survivors: [],
        expected: [null],
        published: [null],
        isDropped: true,
        isDisclosed: false,
        isFlipped: false,
      },
    ])
    expect([...(record?.pointHashes ?? [])]).toEqual(HASHES.map((hash, index) => [index, [hash]]))
    expect(record?.points).toEqual(
      new Map([
        [0, [FIRST]],
        [2, [LAST_POINT]],
      ]),
    )
    expect(record?.shown.map(({ first }) => first)).toEqual([1n, 3n])
    expect(record?.shown[0]).toEqual({
      cohort: 0,
      blob: 0,
      seed: SEED,
      negatedDelta: NEGATED_DELTA,
      first: 1n,
      second: 9n,
    })
  })

  it('is the same from a node that gives few blocks at once, by few questions more', async () => {
    const whole = await readRound(nodeOf(), config, TASK, ROUND)
    const node = nodeOf({ blocks: 100n })
    expect(await readRound(node, config, TASK, ROUND)).toEqual(whole)
    const asked = node.asked.filter((method) => method === 'eth_getLogs').length
    expect(asked).toBeLessThan(24)
  })

  it('is not read of more blocks than a page should ask for', async () => {
    const logs = LOGS.map((log) => (log.name === 'CohortDisclosed' ? { ...log, block: 900_000n } : log))
    const far = nodeOf({ logs, blocks: 2_000_000n })
    const request = far.request
    const late = (({ method, params }: { method: string; params: unknown }) =>
      method === 'eth_blockNumber'
        ? Promise.resolve(numberToHex(1_000_000))
        : (request as (asked: unknown) => Promise<unknown>)({ method, params })) as EIP1193RequestFn
    const { record } = await readRound({ name: 'far', request: late }, config, TASK, ROUND)
    expect(record?.openingBlocks).toBe(899_301)
    expect(record?.shown).toEqual([])
  })
})

describe('no record', () => {
  it.each([
    ['of another chain', nodeOf({ chainId: 1 }), /^chain skipped The node is on chain 1,/],
    ['without the contract', nodeOf({ code: '0x' }), /^chain fails There is no contract at 0x/],
    [
      'without logs',
      nodeOf({ blocks: 0n }),
      /record skipped The record could not be read, so nothing in it was checked: /,
    ],
  ])('from a node %s', async (_, node, said) => {
    const read = await readRound(node, config, TASK, ROUND)
    expect(read.record).toBeNull()
    expect(lines(read)).toMatch(said)
  })

  it('of a task that is not there', async () => {
    const read = await readRound(nodeOf(), config, 5, ROUND)
    expect(read.record).toBeNull()
    expect(lines(read)).toMatch(/record fails The contract has no task 5/)
  })

  it('from a node out of reach', async () => {
    const read = await readRound({ name: 'nobody', url: 'http://127.0.0.1:1/' }, config, TASK, ROUND)
    expect(read.record).toBeNull()
    expect(lines(read)).toMatch(/^chain skipped This could not be asked of nobody: the node does not answer/)
  })
})
