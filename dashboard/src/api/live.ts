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
    predicate: ({ queryKey: [kind, number] }) => kind !== 'task' || (typeof number === 'number' && tasks.has(number)),
  })
}

export function useLive(): Live {
  const client = useQueryClient()
  const [state, setState] = useState<Live>('connecting')
  useEffect(() => {
    const source = new EventSource(`${BASE}/v1/events`)
    const tasks = new Set<number>()
    let timer: ReturnType<typeof setTimeout> | undefined
    source.onopen = () => setState('live')
    source.onerror = () => setState('lost') // the browser tries again by itself
    source.addEventListener('chain', (event: MessageEvent<string>) => {
      const task = taskOf(event)
      if (task !== undefined) tasks.add(task)
      timer ??= setTimeout(() => {
        timer = undefined
        refresh(client, new Set(tasks))
        tasks.clear()
      }, GATHER)
    })
    source.addEventListener('reorg', () => void client.invalidateQueries())
    return () => {
      clearTimeout(timer)
      source.close()
    }
  }, [client])
  return state
}
