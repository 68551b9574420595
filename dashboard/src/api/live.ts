/** Live events of the chain refresh the queries that they concern. Answers have ETags: unchanged ones cost little. */
import { useQueryClient, type QueryClient, type QueryKey } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { addEvent, isConcerned, nothing } from '../lib/concern'
import { notify } from '../lib/notifications'
import { spaced } from '../lib/spaced'
import { BASE } from './client'

export type Live = 'connecting' | 'live' | 'lost'

const GATHER = 300 // milliseconds: a round ends with many events at once
const BETWEEN = 5_000 // milliseconds between two refreshes: an event a second does not mean a request a second

function refresh(client: QueryClient, isDue: (key: QueryKey) => boolean) {
  void client.invalidateQueries({ predicate: ({ queryKey }) => isDue(queryKey) })
}

/** `chain`: an event. */
type Heard = { state: Live } | { chain: unknown } | { reorg: true }

const SHARED = `consilium-events ${BASE}`

function listen(hear: (heard: Heard) => void): () => void {
  const source = new EventSource(`${BASE}/v1/events`)
  source.onopen = () => hear({ state: 'live' })
  source.onerror = () => hear({ state: 'lost' }) // the browser tries again by itself
  source.addEventListener('chain', (event: MessageEvent<string>) => hear({ chain: JSON.parse(event.data) }))
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
    let concern = nothing()
    const concerned = spaced(GATHER, BETWEEN, () => {
      const about = concern
      concern = nothing()
      refresh(client, (key) => isConcerned(key, about))
    })
    const lists = spaced(GATHER, BETWEEN, () => {
      refresh(client, ([kind]) => kind !== 'task' && kind !== 'profile') // sums may change; no event is about a profile
    })
    const stop = listenTogether((heard) => {
      if ('state' in heard) setState(heard.state)
      if ('reorg' in heard) void client.invalidateQueries()
      if (!('chain' in heard)) return
      void notify(heard.chain)
      addEvent(concern, heard.chain)
      concerned.call()
      lists.call()
    })
    return () => {
      concerned.stop()
      lists.stop()
      stop()
    }
  }, [client])
  return state
}
