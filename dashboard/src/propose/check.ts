/** Asks the server to check a task file: after a pause in typing, and no more often than it answers. */
import { useMutation } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { answer, api, type Schemas } from '../api/client'

const PAUSE = 1_200 // milliseconds
const BETWEEN = 5_500 // milliseconds: the server takes 12 checks a minute
export const LONGEST = 65_536 // characters

export interface Valid {
  text: string
  task: Schemas['CheckedTask']
}

export interface Checking {
  /** The latest answer. It is of an earlier text while `isFresh` is false. */
  found: Schemas['Check'] | undefined
  isFresh: boolean
  /** The latest valid file, and its costs. */
  valid: Valid | null
  isBusy: boolean
  error: Error | null
  checkNow: () => void
}

/** Not a query: every event of the chain refreshes those, and the costs of a file do not depend on events. */
export function useCheck(text: string): Checking {
  const [valid, setValid] = useState<Valid | null>(null)
  const { mutate, data, variables, error, isPending } = useMutation({
    mutationFn: (file: string) => answer(api.POST('/v1/tasks/check', { body: { text: file } })),
    onSuccess: ({ task }, file) => {
      if (task) setValid({ text: file, task })
    },
  })
  const last = useRef(0)
  const isAsked = text === variables
  const canAsk = text !== '' && text.length <= LONGEST
  const ask = useCallback(() => {
    last.current = Date.now()
    mutate(text)
  }, [mutate, text])
  useEffect(() => {
    if (isAsked || !canAsk) return
    const timer = setTimeout(ask, Math.max(PAUSE, last.current + BETWEEN - Date.now()))
    return () => clearTimeout(timer)
  }, [ask, isAsked, canAsk])
  return {
    found: data,
    isFresh: isAsked && data !== undefined,
    valid,
    isBusy: isPending,
    error: isAsked ? error : null,
    checkNow: () => {
      if (canAsk) ask()
    },
  }
}
