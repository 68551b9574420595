/** A server of predictions over HTTP (`operators/consilium_operators/market/service.py`). Nothing that it says is trusted
 * without a signature: the buyer's own under its account, and the server's under each answer.
 */
import type { Address, Hex } from 'viem'
import { fieldOf } from '../lib/fields'
import { addressOf, readReceipt, ReceiptMalformed, wholeOf, type Bought, type Voucher } from '../lib/selling'
import type { Column } from '../predict/rows'
import * as say from '../strings'

const words = say.market
const MOST_ANSWER = 1 << 24 // characters
const TIMEOUT = 60_000 // milliseconds: a deposit waits for a block
const TRIES = 3
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']

/** The server refuses, or its answer is none. */
export class ServerRefuses extends Error {
  override readonly name = 'ServerRefuses'
}

export interface Described {
  /** SHA-256 of its model. */
  model: string
  columns: readonly Column[] | null
  mostRows: number
  price: bigint
  expiresAfter: bigint
  leastDeposit: bigint
}

export interface Last {
  sold: bigint
  expiresAt: bigint
  signature: Hex | null
}

export interface Wanted {
  chainId: number
  modelShares: Address
  task: number
  server: Address
}

/** The plain address of a service that a browser may ask; null for any other. */
export function serviceOf(url: string): URL | null {
  const found = URL.canParse(url) ? new URL(url) : null
  if (!found) return null
  const isSafe = found.protocol === 'https:' || (found.protocol === 'http:' && LOOPBACK.includes(found.hostname))
  return isSafe ? found : null
}

/** True if this dashboard's policy lets it connect there; `allowed`: null if it is not known. */
export function isAllowed({ protocol, origin }: URL, allowed: readonly string[] | null): boolean {
  return allowed === null || allowed.some((one) => one === origin || one === protocol)
}

async function ask(url: string, path: string, init: RequestInit = {}): Promise<Response> {
  for (let tries = 1; ; tries++) {
    try {
      const reply = await fetch(url.replace(/\/$/, '') + path, {
        ...init,
        credentials: 'omit',
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT),
      })
      if (reply.status < 502 || tries === TRIES) return reply
    } catch {
      if (tries === TRIES) throw new ServerRefuses(words.noAnswer)
    }
    await new Promise((resolve) => setTimeout(resolve, 500 * tries))
  }
}

async function textOf(reply: Response): Promise<string> {
  const text = await reply.text()
  if (text.length > MOST_ANSWER) throw new ServerRefuses(words.unreadable('…'))
  if (reply.ok) return text
  const problem = parsed(text)
  const [title, detail] = [fieldOf(problem, 'title'), fieldOf(problem, 'detail')]
  const why = typeof title === 'string' && typeof detail === 'string' ? `${title}: ${detail}` : String(reply.status)
  throw new ServerRefuses(words.refuses(why.slice(0, 300)))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Throws ServerRefuses, also for a server of another task, chain or contract than the offer's. */
export async function describe(url: string, wanted: Wanted): Promise<Described> {
  const content = parsed(await textOf(await ask(url, '/')))
  const sale = fieldOf(content, 'sale')
  return readable(() => {
    const isOther =
      fieldOf(sale, 'chainId') !== wanted.chainId ||
      addressOf(sale, 'modelShares') !== wanted.modelShares ||
      addressOf(sale, 'server') !== wanted.server ||
      wholeOf(sale, 'taskId') !== BigInt(wanted.task)
    if (isOther) throw new ServerRefuses(words.other)
    const [model, mostRows] = [fieldOf(content, 'sha256'), fieldOf(fieldOf(content, 'predict'), 'most_rows')]
    const expiresAfter = fieldOf(sale, 'expiresAfter')
    if (typeof model !== 'string' || !/^[0-9a-f]{64}$/.test(model)) throw new ReceiptMalformed('sha256')
    if (typeof mostRows !== 'number') throw new ReceiptMalformed('most_rows')
    if (typeof expiresAfter !== 'number') throw new ReceiptMalformed('expiresAfter')
    return {
      model,
      columns: columnsIn(fieldOf(content, 'data')),
      mostRows,
      price: wholeOf(sale, 'price'),
      expiresAfter: BigInt(Math.ceil(expiresAfter)),
      leastDeposit: wholeOf(sale, 'leastDeposit'),
    }
  })
}

/** Of a table; null for other data. Throws ReceiptMalformed. */
function columnsIn(data: unknown): Column[] | null {
  if (fieldOf(data, 'kind') !== 'table') return null
  const features = fieldOf(data, 'features')
  if (!Array.isArray(features)) throw new ReceiptMalformed('features')
  return features.map((one: unknown) => {
    const [column, min, max] = [fieldOf(one, 'name'), fieldOf(one, 'min'), fieldOf(one, 'max')]
    if (typeof column !== 'string') throw new ReceiptMalformed('name')
    if (typeof min === 'number' && typeof max === 'number') return { column, min, max }
    const [codes, names] = [fieldOf(one, 'values'), fieldOf(one, 'names')]
    if (!isOf(codes, 'number')) throw new ReceiptMalformed(column)
    return isOf(names, 'string') && names.length > 0 ? { column, codes, names } : { column, codes }
  })
}

function isOf(values: unknown, kind: 'number'): values is number[]
function isOf(values: unknown, kind: 'string'): values is string[]
function isOf(values: unknown, kind: string): boolean {
  return Array.isArray(values) && values.every((one) => typeof one === kind)
}

function readable<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof ReceiptMalformed) throw new ServerRefuses(words.unreadable(error.message))
    throw error
  }
}

/** The buyer's last voucher, as the server has it. Throws ServerRefuses. */
export async function lastVoucher(url: string, buyer: Address): Promise<Last> {
  const content = parsed(await textOf(await ask(url, `/channels/${buyer}`)))
  return readable(() => {
    const signature = fieldOf(content, 'signature')
    if (typeof signature !== 'string') return { sold: wholeOf(content, 'sold'), expiresAt: 0n, signature: null }
    return { sold: wholeOf(content, 'sold'), expiresAt: wholeOf(content, 'expiresAt'), signature: signature as Hex }
  })
}

export interface Authorization {
  from: Address
  to: Address
  value: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
}

const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)
const JSON_TYPE = { 'content-type': 'application/json' }

/** The server sends a deposit that the buyer signed. Throws ServerRefuses. */
export async function sendDeposit(url: string, authorization: Authorization, salt: Hex, signature: Hex): Promise<void> {
  const body = JSON.stringify({ authorization, salt, signature }, plain)
  await textOf(await ask(url, '/deposits', { method: 'POST', body, headers: JSON_TYPE }))
}

/** An answer to a paid request. The same request with the same voucher is never paid twice. Throws ServerRefuses. */
export async function buy(
  url: string,
  chainId: number,
  request: string,
  voucher: Voucher,
  signature: Hex,
): Promise<Bought> {
  const payment = {
    x402Version: 2,
    accepted: { scheme: 'consilium-voucher', network: `eip155:${chainId}` },
    payload: { ...voucher, signature },
  }
  const headers = { ...JSON_TYPE, 'payment-signature': btoa(JSON.stringify(payment, plain)) }
  const reply = await ask(url, '/predict', { method: 'POST', body: request, headers })
  const response = await textOf(reply)
  return readable(() => {
    let receipt: unknown
    try {
      receipt = JSON.parse(atob(reply.headers.get('consilium-receipt') ?? ''))
    } catch {
      throw new ReceiptMalformed('CONSILIUM-RECEIPT')
    }
    return { receipt: readReceipt(receipt), request, response }
  })
}
