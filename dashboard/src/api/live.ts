/** Live events of the chain refresh the queries that they concern. Answers have ETags: unchanged ones cost little. */
import { useQueryClient, type QueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { fieldOf } from '../lib/fields'
import { BASE } from './client'

export type Live = 'connecting' | 'live' | 'lost'

const GATHER = 300 // milliseconds: a round ends with many events at once

function taskOf(event: MessageEvent<string>): number | undefined {
  const task = fieldOf(fieldOf(JSON.parse(event.data), 'values'), 'taskId')
  return typeof task === 'string' ? Number(task) : undefined
}

function refresh(client: QueryClient, tasks: ReadonlySet<number>) {
  void client.invalidateQueries({
    predicate: ({ queryKey: [kind, number] }) => {
      if (kind === 'profile') return false // no event is about one
      return kind !== 'task' || (typeof number === 'number' && tasks.has(number))
    },
  })
}

/** `chain`: the task that an event is about, if it is about one. */
type Heard = { state: Live } | { chain: number | undefined } | { reorg: true }

const SHARED = `consilium-events ${BASE}`

function listen(hear: (heard: Heard) => void): () => void {
  const source = new EventSource(`${BASE}/v1/events`)
  source.onopen = () => hear({ state: 'live' })
  source.onerror = () => hear({ state: 'lost' }) // the browser tries again by itself
  source.addEventListener('chain', (event: MessageEvent<string>) => hear({ chain: taskOf(event) }))
  source.addEventListener('reorg', () => hear({ reorg: true }))
  return () => source.close()
}

/** One tab alone asks the server, and tells the others: over HTTP/1.1 a browser opens six connections to a server. Where
 * a page may not use locks (plain HTTP), each tab asks.
 */
function listenTogether(hear: (heard: Heard) => void): () => void {
  if (!('locks' in navigator)) return listen(hear)
  const channel = new BroadcastChannel(SHARED)
  const over = new AbortController()
  channel.onmessage = ({ data }: MessageEvent<Heard | 'new'>) => {
    if (data !== 'new') hear(data)
  }
  channel.postMessage('new')
  const lead = () =>
    new Promise<void>((resolve) => {
      let state: Live = 'connecting'
      const close = listen((heard) => {
        if ('state' in heard) state = heard.state
        channel.postMessage(heard)
        hear(heard)
      })
      channel.onmessage = ({ data }: MessageEvent<Heard | 'new'>) => {
        if (data === 'new') channel.postMessage({ state } satisfies Heard)
      }
      over.signal.addEventListener('abort', () => {
        close()
        resolve()
      })
    })
  navigator.locks.request(SHARED, { signal: over.signal }, lead).catch((error: unknown) => {
    if (!over.signal.aborted) throw error
  })
  return () => {
    over.abort()
    channel.close()
  }
}

export function useLive(): Live {
  const client = useQueryClient()
  const [state, setState] = useState<Live>('connecting')
  useEffect(() => {
    const tasks = new Set<number>()
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = listenTogether((heard) => {
      if ('state' in heard) setState(heard.state)
      if ('reorg' in heard) void client.invalidateQueries()
      if (!('chain' in heard)) return
      if (heard.chain !== undefined) tasks.add(heard.chain)
      timer ??= setTimeout(() => {
        timer = undefined
        refresh(client, new Set(tasks))
        tasks.clear()
      }, GATHER)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [client])
  return state
}
