/** The words for a refusal by a wallet, a chain node or a contract. */
import {
  BaseError,
  ContractFunctionRevertedError,
  HttpRequestError,
  InsufficientFundsError,
  RpcError,
  TimeoutError,
  UserRejectedRequestError,
  WaitForTransactionReceiptTimeoutError,
} from 'viem'
import { formatTokens } from '../lib/amounts'
import { messageOf } from '../lib/errors'
import { fieldOf, isKey } from '../lib/fields'
import { formatTime } from '../lib/times'
import * as say from '../strings'

const words = say.refused

const CHAIN_ERRORS: ReadonlySet<string> = new Set([
  'ChainMismatchError',
  'SwitchChainError',
  'ConnectorChainMismatchError',
])

const ACCOUNT_ERRORS: ReadonlySet<string> = new Set(['ConnectorAccountNotFoundError'])

/** Of EIP-1193 and EIP-1474. */
const BY_CODE: ReadonlyMap<number, string> = new Map([
  [4001, words.declined],
  [-32002, words.busy],
  [4100, words.noAccount],
  [4900, words.disconnected],
  [4901, words.wrongChain],
])

function byCode(code: unknown): string | null {
  return typeof code === 'number' ? (BY_CODE.get(code) ?? words.code(code)) : null
}

/** Names of fields that are amounts of tokens, or times. All others are shown as they are. */
const AMOUNTS = new Set(['free', 'wanted', 'locked', 'left', 'needed', 'balance', 'allowance', 'supply'])
const TIMES = new Set(['maturesAt', 'deadline', 'effectiveAt'])

function shown(name: string, value: unknown): string {
  if (typeof value === 'bigint') {
    if (AMOUNTS.has(name)) return formatTokens(value)
    if (TIMES.has(name)) return formatTime(Number(value))
  }
  return String(value)
}

/** The words for a contract's error, with the values that it carries. */
function contractWords(name: string, values: ReadonlyMap<string, unknown>): string {
  const known = isKey(name, words.byName) ? words.byName[name] : words.unknown
  const carried = [...values].map(([field, value]) => `${field} ${shown(field, value)}`).join(', ')
  return `${known} (${name}${carried && ': ' + carried})`
}

function reverted(error: ContractFunctionRevertedError): string {
  const { data } = error
  if (!data) return words.reverted(error.reason ?? error.shortMessage)
  const inputs = data.abiItem.type === 'error' ? data.abiItem.inputs : []
  const values = new Map(inputs.map((input, index) => [input.name ?? String(index), data.args?.[index]]))
  return contractWords(data.errorName, values)
}

/** Of wagmi, whose errors are not viem's. */
function byName(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  return CHAIN_ERRORS.has(error.name) ? words.wrongChain : ACCOUNT_ERRORS.has(error.name) ? words.otherAccount : null
}

export function refusal(error: unknown): string {
  if (!(error instanceof BaseError)) return byName(error) ?? byCode(fieldOf(error, 'code')) ?? messageOf(error)
  const found = <Kind extends Error>(kind: abstract new (...given: never[]) => Kind): Kind | null => {
    const at = error.walk((one) => one instanceof kind)
    return at instanceof kind ? at : null
  }
  if (found(UserRejectedRequestError)) return words.declined
  const revert = found(ContractFunctionRevertedError)
  if (revert) return reverted(revert)
  if (found(InsufficientFundsError)) return words.noEther
  // An inner call that runs out of gas is a revert without data. If the outermost one does, nodes have their own error.
  if (error.walk((one) => one instanceof BaseError && /out ?of ?gas/i.test(one.details)) !== null)
    return say.sending.outOfGas
  const named = byName(error.walk((one) => byName(one) !== null))
  if (named) return named
  if (error.walk((one) => one instanceof HttpRequestError || one instanceof TimeoutError) !== null) return words.noNode
  if (found(WaitForTransactionReceiptTimeoutError)) return words.late
  if (/insufficient funds/i.test(error.message)) return words.noEther
  return byCode(found(RpcError)?.code) ?? words.other(error.shortMessage)
}
