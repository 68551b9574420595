/** Checks one round: this thread reads its record, and a worker does the rest. */
import { BASE } from '../api/client'
import type { Config } from '../api/config'
import { messageOf } from '../lib/errors'
import * as say from '../strings'
import { readRound, type Node } from './chain'
import type { Step } from './core'
import type { RoundRecord } from './record'
import type { WorkerMessage, WorkerRequest } from './worker'

const words = say.verify
const BLOBS = `${BASE}/v1/artifacts/blobs`
export const READING: Step = { key: 'reading', title: words.asking, state: 'running', lines: [] }

export interface Where {
  task: number
  round: number
}

export interface RoundToVerify extends Where {
  node: Node
  config: Config
  /** The number of an update's coordinates, as the server says. */
  coordinates: number | null
}

/** `record`: null if it could not be read. */
export interface Checked {
  steps: Step[]
  record: RoundRecord | null
}

/** `show` gets all steps so far. The worker ends with it. Throws the signal's reason. */
export async function verifyRound(
  { node, config, task, round, coordinates }: RoundToVerify,
  signal: AbortSignal,
  show: (steps: Step[]) => void = () => undefined,
): Promise<Checked> {
  let checked: Checked = { steps: [READING], record: null }
  const put = (steps: Step[]) => show((checked = { ...checked, steps }).steps)
  try {
    checked = await readRound(node, config, task, round)
    signal.throwIfAborted()
    show(checked.steps)
    if (checked.record)
      await inWorker({ record: checked.record, blobs: BLOBS, coordinates }, signal, (step) =>
        put(joined(checked.steps, step)),
      )
  } catch (error) {
    signal.throwIfAborted()
    put([
      ...checked.steps.map((one): Step => (one.state === 'running' ? { ...one, state: 'skipped' } : one)),
      { key: 'crash', title: words.crash, state: 'skipped', lines: [messageOf(error)] },
    ])
  }
  return checked
}

function joined(steps: readonly Step[], step: Step): Step[] {
  return steps.some((one) => one.key === step.key)
    ? steps.map((one) => (one.key === step.key ? step : one))
    : [...steps, step]
}

async function inWorker(request: WorkerRequest, signal: AbortSignal, put: (step: Step) => void): Promise<void> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
  try {
    await new Promise<void>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => {
        if ('step' in data) put(data.step)
        else if ('crashed' in data) reject(new Error(data.crashed))
        else resolve()
      }
      worker.onerror = (event) => reject(new Error(event.message || words.noWorker))
      signal.addEventListener('abort', () => reject(new Error(words.noWorker)))
      worker.postMessage(request)
    })
  } finally {
    worker.terminate()
  }
}
