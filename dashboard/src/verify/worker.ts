/** Runs the checks outside the page's thread, because one commitment takes about a second. */
import type { Hex } from 'viem'
import ceremonyUrl from '../generated/ceremony.bin?url'
import { messageOf } from '../lib/errors'
import type { Fetched, Step } from './core'
import { parseCeremony } from './kzg'
import type { RoundRecord } from './record'
import { verify } from './run'

export interface WorkerRequest {
  record: RoundRecord
  /** The URL of a mirror that has blobs by their hashes. It is not trusted. */
  blobs: string
  coordinates: number | null
}

/** A step; then the end, or an error of the checks themselves. */
export type WorkerMessage = { step: Step } | { done: true } | { crashed: string }

const TRIES = 5
const LONGEST_WAIT = 10 // seconds

async function fetchBlob(url: string): Promise<Fetched> {
  try {
    for (let left = TRIES; ; left--) {
      const response = await fetch(url)
      if (response.ok) return { blob: new Uint8Array(await response.arrayBuffer()) }
      if (response.status === 404) return { missing: true }
      if (response.status !== 429 || left === 1) return { unreachable: String(response.status) }
      const seconds = Math.min(Number(response.headers.get('Retry-After') ?? 1) || 1, LONGEST_WAIT)
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    }
  } catch (error) {
    return { unreachable: messageOf(error) }
  }
}

function random(): bigint {
  const [high = 0n, low = 0n] = crypto.getRandomValues(new BigUint64Array(2))
  return (high << 64n) | low
}

function send(message: WorkerMessage) {
  self.postMessage(message)
}

async function verifyAll({ record, blobs, coordinates }: WorkerRequest) {
  const source = {
    ceremony: async () => {
      const response = await fetch(ceremonyUrl)
      if (!response.ok) throw new Error(String(response.status))
      return parseCeremony(new Uint8Array(await response.arrayBuffer()))
    },
    blob: (hash: Hex) => fetchBlob(`${blobs}/${hash}`),
    coordinates,
    random,
  }
  for await (const step of verify(record, source)) send({ step })
}

self.onmessage = ({ data }: MessageEvent<WorkerRequest>) => {
  verifyAll(data).then(
    () => send({ done: true }),
    (error: unknown) => send({ crashed: messageOf(error) }),
  )
}
