/** Asks the server what a task file comes to: after a pause in the typing, and no more often than it answers. */
import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { answer, api, type Schemas } from '../api/client'

const PAUSE = 1_200 // milliseconds
const BETWEEN = 5_500 // the server takes 12 a minute
export const LONGEST = 65_536 // characters

export interface Held {
  text: string
  task: Schemas['CheckedTask']
}

export interface Checking {
  /** What was found last; of another text than the present one while `isFresh` is false. */
  found: Schemas['Check'] | undefined
  isFresh: boolean
  /** The latest file that held, and what it comes to. */
  held: Held | null
  isBusy: boolean
  error: Error | null
  now: () => void
}

/** Not a query: those are asked anew with every event of the chain, and what a file comes to has nothing to do with it. */
export function useCheck(text: string): Checking {
  const [held, setHeld] = useState<Held | null>(null)
  const { mutate, data, variables, error, isPending } = useMutation({
    mutationFn: (given: string) => answer(api.POST('/v1/tasks/check', { body: { text: given } })),
    onSuccess: ({ task }, given) => {
      if (task) setHeld({ text: given, task })
    },
  })
  const last = useRef(0)
  const isAsked = text === variables
  const canAsk = text !== '' && text.length <= LONGEST
  useEffect(() => {
    if (isAsked || !canAsk) return
    const wait = Math.max(PAUSE, last.current + BETWEEN - Date.now())
    const timer = setTimeout(() => {
      last.current = Date.now()
      mutate(text)
    }, wait)
    return () => clearTimeout(timer)
  }, [text, isAsked, canAsk, mutate])
  return {
    found: data,
    isFresh: isAsked && data !== undefined,
    held,
    isBusy: isPending,
    error: isAsked ? error : null,
    now: () => {
      if (!canAsk) return
      last.current = Date.now()
      mutate(text)
    },
  }
}
