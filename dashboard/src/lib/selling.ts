/** Receipts of predictions and the messages of a sale, as `operators/consilium_operators/market` has them. Pure.
 *
 * A receipt's file is JSON: {"receipt": {…}, "request": the body's text, "response": the body's text}.
 */
import { hashTypedData, isAddress, recoverTypedDataAddress, sha256, stringToBytes, type Address, type Hex } from 'viem'
import { same } from './accounts'
import { fieldOf } from './fields'

/** The contract that a sale's signatures are for. */
export interface Domain {
  chainId: number
  modelShares: Address
}

export interface Receipt {
  taskId: bigint
  server: Address
  buyer: Address
  amount: bigint
  payment: Hex
  model: Hex
  request: Hex
  response: Hex
  signature: Hex
}

export interface Voucher {
  buyer: Address
  server: Address
  taskId: bigint
  amount: bigint
  expiresAt: bigint
}

/** An answer with its receipt; `request` and `response` are the texts of the two bodies. */
export interface Bought {
  receipt: Receipt
  request: string
  response: string
}

export type Check = 'signature' | 'request' | 'response' | 'model' | 'payment' | 'predictions'

/** `holds`: null if it was not checked. `compared`: what was compared, as hashes or addresses. */
export interface Finding {
  check: Check
  holds: boolean | null
  compared: readonly string[]
}

/** Not a receipt of predictions. */
export class ReceiptMalformed extends Error {
  constructor(field: string) {
    super(field)
    this.name = 'ReceiptMalformed'
  }
}

const RECEIPT = [
  { name: 'taskId', type: 'uint256' },
  { name: 'server', type: 'address' },
  { name: 'buyer', type: 'address' },
  { name: 'amount', type: 'uint256' },
  { name: 'payment', type: 'bytes32' },
  { name: 'model', type: 'bytes32' },
  { name: 'request', type: 'bytes32' },
  { name: 'response', type: 'bytes32' },
] as const
const VOUCHER = [
  { name: 'buyer', type: 'address' },
  { name: 'server', type: 'address' },
  { name: 'taskId', type: 'uint256' },
  { name: 'amount', type: 'uint256' },
  { name: 'expiresAt', type: 'uint256' },
] as const

const domainOf = ({ chainId, modelShares }: Domain) =>
  ({ name: 'Consilium model shares', version: '1', chainId, verifyingContract: modelShares }) as const

export const receiptMessage = (of: Domain, message: Omit<Receipt, 'signature'>) => ({
  domain: domainOf(of),
  types: { Receipt: RECEIPT },
  primaryType: 'Receipt' as const,
  message,
})

export const voucherMessage = (of: Domain, message: Voucher) => ({
  domain: domainOf(of),
  types: { Voucher: VOUCHER },
  primaryType: 'Voucher' as const,
  message,
})

/** The account that signed a voucher; null for a signature that is none. */
export async function signerOf(of: Domain, voucher: Voucher, signature: Hex): Promise<Address | null> {
  return await recoverTypedDataAddress({ ...voucherMessage(of, voucher), signature }).catch(() => null)
}

/** The voucher's digest, which a receipt has as its payment. */
export const digestOf = (of: Domain, voucher: Voucher): Hex => hashTypedData(voucherMessage(of, voucher))

/** An unsigned decimal number of JSON's text. Throws ReceiptMalformed. */
export function wholeOf(of: unknown, field: string): bigint {
  const value = fieldOf(of, field)
  if (typeof value !== 'string' || !/^\d{1,30}$/.test(value)) throw new ReceiptMalformed(field)
  return BigInt(value)
}

/** Throws ReceiptMalformed. */
export function addressOf(of: unknown, field: string): Address {
  const value = fieldOf(of, field)
  if (typeof value !== 'string' || !isAddress(value)) throw new ReceiptMalformed(field)
  return value
}

function bytesOf(of: unknown, field: string, length: number): Hex {
  const value = fieldOf(of, field)
  if (typeof value !== 'string' || !/^0x[0-9a-f]*$/.test(value) || value.length !== 2 + 2 * length)
    throw new ReceiptMalformed(field)
  return value as Hex
}

/** Throws ReceiptMalformed. */
export function readReceipt(of: unknown): Receipt {
  return {
    taskId: wholeOf(of, 'taskId'),
    server: addressOf(of, 'server'),
    buyer: addressOf(of, 'buyer'),
    amount: wholeOf(of, 'amount'),
    payment: bytesOf(of, 'payment', 32),
    model: bytesOf(of, 'model', 32),
    request: bytesOf(of, 'request', 32),
    response: bytesOf(of, 'response', 32),
    signature: bytesOf(of, 'signature', 65),
  }
}

/** A receipt's file. Throws ReceiptMalformed. */
export function readFile(text: string): Bought {
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    throw new ReceiptMalformed('JSON')
  }
  const [request, response] = [fieldOf(content, 'request'), fieldOf(content, 'response')]
  if (typeof request !== 'string') throw new ReceiptMalformed('request')
  if (typeof response !== 'string') throw new ReceiptMalformed('response')
  return { receipt: readReceipt(fieldOf(content, 'receipt')), request, response }
}

/** As `consilium buy` writes it. */
export function fileOf({ receipt, request, response }: Bought): string {
  const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)
  return JSON.stringify({ receipt, request, response }, plain, 2)
}

/** The server's signature and the hashes; `model`: SHA-256 of the task's model, null if it is not known. */
export async function checked(of: Domain, bought: Bought, model: string | null): Promise<Finding[]> {
  const { receipt, request, response } = bought
  const { signature } = receipt
  const signer = await recoverTypedDataAddress({ ...receiptMessage(of, receipt), signature }).catch(() => null)
  const hashed = (check: 'request' | 'response', body: string): Finding => {
    const found = sha256(stringToBytes(body))
    return { check, holds: found === receipt[check], compared: [found, receipt[check]] }
  }
  return [
    {
      check: 'signature',
      holds: signer !== null && same(signer, receipt.server),
      compared: [signer ?? '–', receipt.server],
    },
    hashed('request', request),
    hashed('response', response),
    { check: 'model', holds: model === null ? null : receipt.model === `0x${model}`, compared: [receipt.model] },
  ]
}

/** A receipt for this voucher and price. */
export function ofPayment(of: Domain, { receipt }: Bought, voucher: Voucher, price: bigint): Finding {
  const digest = digestOf(of, voucher)
  const isOwn = same(receipt.buyer, voucher.buyer) && same(receipt.server, voucher.server)
  const holds = isOwn && receipt.taskId === voucher.taskId && receipt.amount === price && receipt.payment === digest
  return { check: 'payment', holds, compared: [digest, receipt.payment] }
}

const MOST_DIFFERENCE = 1e-4 // between two machines, as a part of the largest value of a column, or 1

export type Row = Readonly<Record<string, unknown>>

/** The rows of a request's body. Throws ReceiptMalformed. */
export function rowsIn(request: string): Row[] {
  const rows: unknown = fieldOf(JSON.parse(request), 'rows')
  if (!Array.isArray(rows) || rows.some((row) => typeof row !== 'object' || row === null))
    throw new ReceiptMalformed('rows')
  return rows as Row[]
}

/** The values of the answers with these names, by row. Throws ReceiptMalformed. */
export function valuesIn(response: string, names: readonly string[]): number[][] {
  const predictions: unknown = fieldOf(JSON.parse(response), 'predictions')
  if (!Array.isArray(predictions)) throw new ReceiptMalformed('predictions')
  return predictions.map((one: unknown) => {
    const values = fieldOf(one, 'probabilities') ?? fieldOf(one, 'answers')
    return names.map((name) => {
      const value = fieldOf(values, name)
      if (typeof value !== 'number') throw new ReceiptMalformed(name)
      return value
    })
  })
}

/** True if two runs of one model could give both. */
export function areAlike(stated: readonly (readonly number[])[], own: readonly (readonly number[])[]): boolean {
  if (stated.length !== own.length || own.length === 0) return false
  const sizes = (own[0] ?? []).map((_, column) => Math.max(1, ...own.map((row) => Math.abs(row[column] ?? NaN))))
  return stated.every((row, at) =>
    row.every((value, column) => {
      const difference = Math.abs(value - (own[at]?.[column] ?? NaN))
      return difference <= MOST_DIFFERENCE * (sizes[column] ?? NaN)
    }),
  )
}
