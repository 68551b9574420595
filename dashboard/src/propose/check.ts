/** Asks the server to check a draft: after a pause in typing, and no more often than it answers. */
import { queryOptions, useMutation } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { answer, api, type Schemas } from '../api/client'
import type { Schema, Tree } from '../lib/taskform'

const PAUSE = 1_200 // milliseconds
const BETWEEN = 5_500 // milliseconds: the server takes 12 checks a minute
export const LONGEST = 65_536 // characters

export const taskSchema = () =>
  queryOptions({
    queryKey: ['task-schema'],
    staleTime: Infinity,
    queryFn: async ({ signal }) => (await answer(api.GET('/v1/task-schema', { signal }))) as Schema,
  })

/** The latest change: of the file's text, or of the document that the form shows. The server makes one of the other. */
export type Draft = { text: string } | { document: Tree }

export interface Valid {
  text: string
  task: Schemas['CheckedTask']
}

export interface Checking {
  /** The latest answer. It is of an earlier draft while `isFresh` is false. */
  found: Schemas['Check'] | undefined
  isFresh: boolean
  /** The latest valid file, and its costs. */
  valid: Valid | null
  isBusy: boolean
  error: Error | null
  checkNow: () => void
}

/** A stored file's text. */
export async function fileOf(hash: string): Promise<string> {
  const params = { path: { hash } }
  const read: unknown = await answer(api.GET('/v1/artifacts/files/{hash}', { params, parseAs: 'text' }))
  return String(read)
}

/** Not a query: every event of the chain refreshes those, and the costs of a file do not depend on events. */
export function useCheck(draft: Draft): Checking {
  const [valid, setValid] = useState<Valid | null>(null)
  const [found, setFound] = useState<{ of: Draft; check: Schemas['Check'] } | null>(null)
  const { mutate, variables, error, isPending } = useMutation({
    mutationFn: (given: Draft) => answer(api.POST('/v1/tasks/check', { body: given })),
    onSuccess: (check, of) => {
      setFound({ of, check })
      if (check.task) setValid({ text: check.text, task: check.task })
    },
  })
  const last = useRef(0)
  const isAsked = draft === variables
  const canAsk = 'document' in draft || (draft.text !== '' && draft.text.length <= LONGEST)
  const ask = useCallback(() => {
    last.current = Date.now()
    mutate(draft)
  }, [mutate, draft])
  useEffect(() => {
    if (isAsked || !canAsk) return
    const pause = last.current === 0 ? 0 : PAUSE // the form waits for the first answer
    const timer = setTimeout(ask, Math.max(pause, last.current + BETWEEN - Date.now()))
    return () => clearTimeout(timer)
  }, [ask, isAsked, canAsk])
  return {
    found: found?.check,
    isFresh: found?.of === draft,
    valid,
    isBusy: isPending,
    error: isAsked ? error : null,
    checkNow: () => {
      if (canAsk) ask()
    },
  }
}
