/** Ensembles of models, as `operators/consilium_operators/ensembles` and `IEnsembles.sol` have them. Pure. */
import { sha256, stringToBytes } from 'viem'

/** Ensembles' numbers are above it, tasks' are below. */
const ENSEMBLES = 2 ** 48

export const isEnsemble = (number: number) => number > ENSEMBLES

/** Its number for people: 1 for the first. */
export const orderOf = (number: number) => number - ENSEMBLES

/** `gain`: its improvement in millionths, an exact decimal number. `sha256`: of its model. */
export interface Member {
  task: number
  gain: string
  sha256: string
}

/** The digest of receipts, 64 hexadecimal digits: SHA-256 of JSON with sorted keys and without spaces. */
export function digestOf(chainId: number, number: number, members: readonly Member[]): string {
  const listed = members.map((one) => `{"gain":${one.gain},"sha256":"${one.sha256}","task":${one.task}}`)
  const text = `{"chain_id":${chainId},"members":[${listed.join(',')}],"number":${number}}`
  return sha256(stringToBytes(text)).slice(2)
}

/** Each gain over their sum. */
export function weightsOf(gains: readonly string[]): number[] {
  const total = gains.reduce((sum, gain) => sum + BigInt(gain), 0n)
  return gains.map((gain) => Number(BigInt(gain)) / Number(total))
}

/** A task's weight among the members, in millionths; 0 if it is none of them. */
export function weightIn(members: readonly { task: number; weight: number }[], task: number): number {
  return members.find((one) => one.task === task)?.weight ?? 0
}

/** Answers (members, rows, answers) -> their weighted sum (rows, answers). */
export function mixed(weights: readonly number[], answers: readonly (readonly (readonly number[])[])[]): number[][] {
  const [first = []] = answers
  return first.map((row, at) =>
    row.map((_, answer) =>
      weights.reduce((sum, weight, one) => sum + weight * (answers[one]?.[at]?.[answer] ?? NaN), 0),
    ),
  )
}
