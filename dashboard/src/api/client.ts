/** The operator's API. No check relies on its answers: checks read the chain. */
import createClient from 'openapi-fetch'
import { fieldOf } from '../lib/fields'
import type { components, paths } from '../generated/api'

export type Schemas = components['schemas']
export type Role = Schemas['NodeSummary']['role']
export type Phase = Schemas['TaskSummary']['phase']

/** An answer other than 2xx: a problem of RFC 9457, with the server's `detail` as its message. */
export class ApiProblem extends Error {
  readonly status: number
  readonly kind: string
  constructor(status: number, kind: string, detail: string) {
    super(detail)
    this.name = 'ApiProblem'
    this.status = status
    this.kind = kind
  }
}

/** The API has not answered. */
export class ApiUnreachable extends Error {
  constructor() {
    super('the API does not answer')
    this.name = 'ApiUnreachable'
  }
}

const TIMEOUT = 20_000 // milliseconds

/** Throws ApiUnreachable without an answer in time. */
export async function fetchInTime(request: Request): Promise<Response> {
  try {
    return await fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT)]) })
  } catch (error) {
    if (request.signal.aborted) throw error
    throw new ApiUnreachable()
  }
}

export const BASE = new URL('.', document.baseURI).href.replace(/\/$/, '')

export const api = createClient<paths>({ baseUrl: BASE, fetch: fetchInTime })

function textOf(value: unknown, key: string): string | undefined {
  const field = fieldOf(value, key)
  return typeof field === 'string' ? field : undefined
}

/** The body of an answer. Throws ApiProblem, ApiUnreachable. */
export async function answer<T>(reply: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await reply
  if (data !== undefined) return data
  const kind = textOf(error, 'type') ?? 'urn:consilium:problem:fault'
  throw new ApiProblem(
    response.status,
    kind.replace('urn:consilium:problem:', ''),
    textOf(error, 'detail') ?? response.statusText,
  )
}
