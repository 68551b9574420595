import { expect, test } from 'vitest'
import vectors from '../../tests/vectors/receipts.json'
import {
  areAlike,
  checked,
  digestOf,
  fileOf,
  ofPayment,
  readFile,
  ReceiptMalformed,
  rowsIn,
  signerOf,
  valuesIn,
  type Voucher,
} from '../src/lib/selling'
import { isAllowed, serviceOf } from '../src/market/server'

const domain = { chainId: vectors.chainId, modelShares: vectors.modelShares as `0x${string}` }
const hex = (text: string) => text as `0x${string}`
const voucher: Voucher = {
  buyer: hex(vectors.voucher.buyer),
  server: hex(vectors.voucher.server),
  taskId: BigInt(vectors.voucher.taskId),
  amount: BigInt(vectors.voucher.amount),
  expiresAt: BigInt(vectors.voucher.expiresAt),
}
const [first] = vectors.cases
const good = readFile(JSON.stringify(first?.file))

test.each(vectors.cases)('$name', async ({ file, holds }) => {
  const findings = await checked(domain, readFile(JSON.stringify(file)), vectors.model)
  expect(Object.fromEntries(findings.map(({ check, holds: found }) => [check, found]))).toEqual(holds)
})

test('a model that is not known is not checked', async () => {
  const findings = await checked(domain, good, null)
  expect(findings.map(({ holds }) => holds)).toEqual([true, true, true, null])
})

test('a voucher has the digest and the signer of Python’s', async () => {
  expect(digestOf(domain, voucher)).toBe(vectors.voucher.digest)
  expect(await signerOf(domain, voucher, hex(vectors.voucher.signature))).toBe(voucher.buyer)
  expect(await signerOf(domain, { ...voucher, amount: 1n }, hex(vectors.voucher.signature))).not.toBe(voucher.buyer)
  expect(await signerOf(domain, voucher, '0x00')).toBeNull()
})

test('a receipt is for the buyer’s own voucher and price', () => {
  const price = good.receipt.amount
  expect(ofPayment(domain, good, voucher, price).holds).toBe(true)
  expect(ofPayment(domain, good, voucher, price + 1n).holds).toBe(false)
  expect(ofPayment(domain, good, { ...voucher, amount: voucher.amount + 1n }, price).holds).toBe(false)
  expect(ofPayment(domain, good, { ...voucher, taskId: 8n }, price).holds).toBe(false)
  expect(ofPayment(domain, good, { ...voucher, server: voucher.buyer }, price).holds).toBe(false)
})

test('a file is read as it was written', () => {
  expect(readFile(fileOf(good))).toEqual(good)
  expect(JSON.parse(fileOf(good))).toEqual(first?.file)
})

test.each([
  ['', 'JSON'],
  ['[]', 'request'],
  ['{"request": "", "response": 1}', 'response'],
  ['{"request": "", "response": "", "receipt": {"taskId": 7}}', 'taskId'],
  [JSON.stringify({ ...first?.file, receipt: { ...first?.file.receipt, model: '0x00' } }), 'model'],
  [JSON.stringify({ ...first?.file, receipt: { ...first?.file.receipt, server: '0x11' } }), 'server'],
])('%s is no receipt', (text, field) => {
  expect(() => readFile(text)).toThrow(new ReceiptMalformed(field))
})

test('rows and values are read from the bodies', () => {
  expect(rowsIn(good.request)).toEqual([{ größe: 61.5, sex: null }])
  expect(valuesIn(good.response, ['no', 'yes'])).toEqual([[0.75, 0.25]])
  expect(() => valuesIn(good.response, ['maybe'])).toThrow('maybe')
  expect(() => rowsIn('{}')).toThrow('rows')
})

test.each([
  [[[0.5, 0.5]], [[0.50009, 0.49991]], true],
  [[[0.5, 0.5]], [[0.5002, 0.4998]], false],
  [[[1000]], [[1000.09]], true],
  [[[1000]], [[1000.2]], false],
  [[[0.5]], [[NaN]], false],
  [[[0.5]], [[0.5], [0.5]], false],
  [[], [], false],
])('%j and %j are alike: %s', (stated, own, alike) => {
  expect(areAlike(stated, own)).toBe(alike)
})

test.each([
  ['https://a.example/x', 'https://a.example/x'],
  ['http://127.0.0.1:8700', 'http://127.0.0.1:8700/'],
  ['http://a.example', null],
  ['javascript:alert(1)', null],
  ['', null],
])('%s is a service at %s', (url, service) => {
  expect(serviceOf(url)?.href ?? null).toBe(service)
})

test('a page connects where the dashboard lets it', () => {
  const url = new URL('https://a.example:8700/x')
  expect(isAllowed(url, null)).toBe(true)
  expect(isAllowed(url, ['https://a.example:8700'])).toBe(true)
  expect(isAllowed(url, ['https:'])).toBe(true)
  expect(isAllowed(url, ['https://a.example'])).toBe(false)
  expect(isAllowed(new URL('http://127.0.0.1:1'), ['https:'])).toBe(false)
})
