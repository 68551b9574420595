/** The checks, off the page's thread: a commitment alone takes about a second. */
import type { Hex } from 'viem'
import ceremonyUrl from '../generated/ceremony.bin?url'
import type { Fetched, Step } from './core'
import { parseCeremony } from './kzg'
import type { RoundRecord } from './record'
import { reason, verify } from './run'

export interface Order {
  record: RoundRecord
  /** Where blobs are, by their hashes: a mirror, which is believed in nothing. */
  blobs: string
  parameters: number | null
}

/** Steps as they come, then null; or what went wrong with the checks themselves. */
export type Told = { step: Step } | { done: true } | { crashed: string }

const PATIENCE = 5 // times
const LONGEST_WAIT = 10 // seconds

async function fetchBlob(url: string): Promise<Fetched> {
  try {
    for (let left = PATIENCE; ; left--) {
      const response = await fetch(url)
      if (response.ok) return { blob: new Uint8Array(await response.arrayBuffer()) }
      if (response.status === 404) return { missing: true }
      if (response.status !== 429 || left === 1) return { unreachable: String(response.status) }
      const seconds = Math.min(Number(response.headers.get('Retry-After') ?? 1) || 1, LONGEST_WAIT)
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    }
  } catch (error) {
    return { unreachable: reason(error) }
  }
}

function random(): bigint {
  const [high = 0n, low = 0n] = crypto.getRandomValues(new BigUint64Array(2))
  return (high << 64n) | low
}

function tell(told: Told) {
  self.postMessage(told)
}

async function carryOut({ record, blobs, parameters }: Order) {
  const source = {
    ceremony: async () => {
      const response = await fetch(ceremonyUrl)
      if (!response.ok) throw new Error(String(response.status))
      return parseCeremony(new Uint8Array(await response.arrayBuffer()))
    },
    blob: (hash: Hex) => fetchBlob(`${blobs}/${hash}`),
    parameters,
    random,
  }
  for await (const step of verify(record, source)) tell({ step })
}

self.onmessage = ({ data }: MessageEvent<Order>) => {
  carryOut(data).then(
    () => tell({ done: true }),
    (error: unknown) => tell({ crashed: reason(error) }),
  )
}
