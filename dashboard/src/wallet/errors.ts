/** The words for a refusal by a wallet, a chain node or a contract. */
import {
  BaseError,
  ContractFunctionRevertedError,
  HttpRequestError,
  InsufficientFundsError,
  InternalRpcError,
  UserRejectedRequestError,
} from 'viem'
import { formatTokens } from '../lib/amounts'
import { messageOf } from '../lib/errors'
import { isKey } from '../lib/fields'
import { formatTime } from '../lib/times'
import { say } from '../strings'

const words = say.refused

const CHAIN_ERRORS: ReadonlySet<string> = new Set([
  'ChainMismatchError',
  'SwitchChainError',
  'ConnectorChainMismatchError',
])

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

export function refusal(error: unknown): string {
  if (!(error instanceof BaseError)) return messageOf(error)
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
  if (error.walk((one) => one instanceof Error && CHAIN_ERRORS.has(one.name)) !== null) return words.wrongChain
  if (found(HttpRequestError)) return words.noNode
  if (found(InternalRpcError) && /insufficient funds/i.test(error.message)) return words.noEther
  return words.other(error.shortMessage)
}
