/** A task's model, computed in this browser by onnxruntime-web. Once it is loaded, nothing is asked of any server. */
import { env, InferenceSession, Tensor } from 'onnxruntime-web/wasm'
import { sha256 } from 'viem'
import { BASE } from '../api/client'
import { fieldOf } from '../lib/fields'
import * as say from '../strings'
import type { Size } from './pixels'
import { columnsOf, type Column, type Input } from './rows'

env.wasm.numThreads = 1 // more would need a page that is isolated from other sites

/** One of a model's answers. unit: of an amount, perhaps empty; null for a chance from 0 to 1. */
export interface Answer {
  words: string
  unit: string | null
}

/** Either columns or an image's size. */
export interface Model {
  answers: readonly Answer[]
  /** True for classes, of which one is the likeliest. */
  exclusive: boolean
  columns: readonly Column[]
  size: Size | null
  /** A row float64 (columns,), NaN for a missing value -> each answer. */
  ofRow: (row: Float64Array) => Promise<number[]>
  /** Pixels (channels, height, width) -> each answer. */
  ofImage: (pixels: Uint8Array) => Promise<number[]>
}

/** `name`: of the graph's file. Throws an error of the fetch, or if the server's two files are not of one model. */
export async function load(task: number, name: string, signal: AbortSignal): Promise<Model> {
  const file = async (one: string) => {
    const reply = await fetch(`${BASE}/v1/tasks/${task}/model/${one}`, { signal })
    if (!reply.ok) throw new Error(`${one}: ${reply.status} ${reply.statusText}`)
    return new Uint8Array(await reply.arrayBuffer())
  }
  const [description, graph] = await Promise.all([file('model.json'), file(name)])
  const index: unknown = JSON.parse(new TextDecoder().decode(description))
  if (fieldOf(fieldOf(index, 'files'), name) !== sha256(graph).slice(2)) throw new Error(say.predict.changed)
  const [classes, inputs] = [fieldOf(index, 'classes'), fieldOf(index, 'inputs')]
  // A file of an earlier release has classes alone.
  const answers = fieldOf(index, 'answers') ?? (classes as string[]).map((words) => ({ words, unit: null }))
  if (!Array.isArray(answers) || !Array.isArray(inputs)) throw new Error(say.predict.unread)
  const session = await InferenceSession.create(graph)
  const compute = async (given: Tensor) => {
    const found = await session.run({ [session.inputNames[0] ?? '']: given })
    return Array.from(found[session.outputNames[0] ?? '']?.data as Float32Array)
  }
  const [input] = session.inputMetadata
  const [channels, height, width] = input?.isTensor ? input.shape.slice(1).map(Number) : []
  const size = channels && height && width ? { channels, height, width } : null
  // A browser has images of 8 bits alone.
  if (size && (!input?.isTensor || input.type !== 'uint8' || ![1, 3].includes(size.channels)))
    throw new Error(say.predict.deep)
  return {
    exclusive: Array.isArray(classes) && classes.length > 0,
    answers: (answers as Partial<Answer>[]).map(({ words = '', unit = null }) => ({ words, unit })),
    columns: size ? [] : columnsOf(inputs as Input[]),
    size,
    ofRow: (row) => compute(new Tensor('float64', row, [1, row.length])),
    ofImage: (pixels) => compute(new Tensor('uint8', pixels, [1, channels ?? 0, height ?? 0, width ?? 0])),
  }
}
