/** The models behind a number of sales: a task's own, or those of an ensemble's members. */
import { useQueries, useQuery } from '@tanstack/react-query'
import type { Config } from '../api/config'
import { ensemble, models } from '../api/queries'
import { digestOf, isEnsemble, weightsOf, type Member } from '../lib/ensembles'

export interface Part {
  task: number
  weight: number
}

/** `sha256`: as receipts have it; null if this server lacks a model. `bytes`: of all graphs; null if one is missing. */
export interface Sold {
  parts: readonly Part[]
  sha256: string | null
  bytes: number | null
}

/** Undefined until all is read. */
export function useSold({ chainId }: Config, number: number): Sold | undefined {
  const isOne = !isEnsemble(number)
  const { data: found, isPending } = useQuery({ ...ensemble(number), enabled: !isOne })
  const listed = isOne ? [{ task: number, gain: '1' }] : (found?.members ?? [])
  const asked = useQueries({ queries: listed.map(({ task }) => models(task)) })
  if ((!isOne && isPending) || asked.some((one) => one.isPending)) return undefined
  const own = asked.map(({ data }) => data?.items[0])
  const members = listed.map(({ task, gain }, at): Member => ({ task, gain, sha256: own[at]?.sha256 ?? '' }))
  const isKnown = members.length > 0 && members.every(({ sha256 }) => sha256 !== '')
  const sizes = own.map((one) => one?.files.find(({ name }) => name === 'model.onnx')?.size ?? NaN)
  const bytes = sizes.length > 0 ? sizes.reduce((sum, size) => sum + size, 0) : NaN
  const weights = weightsOf(members.map(({ gain }) => gain))
  return {
    parts: members.map(({ task }, at) => ({ task, weight: weights[at] ?? NaN })),
    sha256: !isKnown ? null : isOne ? (members[0]?.sha256 ?? null) : digestOf(chainId, number, members),
    bytes: Number.isNaN(bytes) ? null : bytes,
  }
}
