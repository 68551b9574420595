/** A task's terms as the contract takes them, from the API's terms of a task file. The ABI lists the fields. */
import { getAbiItem, type Address, type ContractFunctionArgs, type Hash } from 'viem'
import type { Schemas } from '../api/client'
import { tasksAbi } from '../generated/abi'

export type TaskParams = ContractFunctionArgs<typeof tasksAbi, 'nonpayable', 'propose'>[0]

const FIELDS = getAbiItem({ abi: tasksAbi, name: 'propose' }).inputs[0].components

/** Throws RangeError if the API's terms lack one of the contract's. */
export function taskParams(terms: Schemas['Terms'], specHash: Hash, aggregator: Address): TaskParams {
  const values = new Map<string, string | number | boolean>(
    Object.entries({ ...terms, spec_hash: specHash, aggregator }),
  )
  const fields = FIELDS.map(({ name, type }) => {
    const value = values.get(name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
    if (value === undefined) throw new RangeError(`the terms have no ${name}`)
    return [name, isLong(type) ? BigInt(value) : value] as const
  })
  return Object.fromEntries(fields) as unknown as TaskParams
}

/** True for integers of more than 48 bits, which viem takes as bigint. */
function isLong(type: string): boolean {
  return /^u?int/.test(type) && Number(type.replace(/^u?int/, '')) > 48
}
