/** Queries of the pages. Live events name the keys: `['task', 3]` is everything about task 3. */
import { infiniteQueryOptions, queryOptions, type QueryKey } from '@tanstack/react-query'
import type { paths } from '../generated/api'
import { answer, api, type Role, type Schemas } from './client'

type Query<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Q } } }
  ? Omit<NonNullable<Q>, 'cursor'>
  : never
export type TaskQuery = Query<'/v1/tasks'>
export type NodeQuery = Query<'/v1/nodes'>

type Reply<T> = Promise<{ data?: T; error?: unknown; response: Response }>

function single<T>(queryKey: QueryKey, ask: (signal: AbortSignal) => Reply<T>) {
  return queryOptions({ queryKey, queryFn: ({ signal }) => answer(ask(signal)) })
}

/** A list that the API gives page by page. `cursor` is empty for the first page. */
function list<T extends { next: string | null }>(
  queryKey: QueryKey,
  ask: (cursor: { cursor?: string }, signal: AbortSignal) => Reply<T>,
) {
  return infiniteQueryOptions({
    queryKey,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: T) => last.next ?? undefined,
    queryFn: ({ pageParam, signal }) => answer(ask(pageParam === undefined ? {} : { cursor: pageParam }, signal)),
  })
}

export const network = () => single(['network'], (signal) => api.GET('/v1/network', { signal }))

/** The token's symbol; null until the server knows it. It never changes. */
export const symbol = () => ({
  ...network(),
  staleTime: Infinity,
  select: (found: Schemas['Network']) => found.token_symbol,
})

export const found = (text: string) =>
  single(['search', text], (signal) => api.GET('/v1/search', { params: { query: { q: text } }, signal }))

export const tasks = (query: TaskQuery) =>
  list(['tasks', query], (cursor, signal) =>
    api.GET('/v1/tasks', { params: { query: { ...query, ...cursor } }, signal }),
  )

export const task = (number: number) =>
  single(['task', number], (signal) => api.GET('/v1/tasks/{task}', { params: { path: { task: number } }, signal }))

const ASKED_FOR_ONNX = 12 // times, since the page was opened

export const models = (number: number) =>
  queryOptions({
    ...single(['task', number, 'models'], (signal) =>
      api.GET('/v1/tasks/{task}/models', { params: { path: { task: number } }, signal }),
    ),
    // No event tells of a model: it is derived some seconds after a round's last event, and model.onnx comes later, if
    // it comes.
    refetchInterval: ({ state: { data, dataUpdateCount } }) => {
      const last = data?.items.find((one) => one.round === one.rounds)
      const isWhole = last?.files.some((file) => file.name === 'model.onnx') || dataUpdateCount > ASKED_FOR_ONNX
      return last && isWhole ? false : 10_000
    },
  })

export const report = (number: number) =>
  single(['task', number, 'report'], (signal) =>
    api.GET('/v1/tasks/{task}/report', { params: { path: { task: number } }, signal }),
  )

export const statistics = (number: number) =>
  single(['task', number, 'statistics'], (signal) =>
    api.GET('/v1/tasks/{task}/statistics', { params: { path: { task: number } }, signal }),
  )

export const rounds = (number: number) =>
  list(['task', number, 'rounds'], (cursor, signal) => {
    const params = { path: { task: number }, query: { limit: 200, ...cursor } }
    return api.GET('/v1/tasks/{task}/rounds', { params, signal })
  })

/** Of an arena. */
export const standings = (number: number) =>
  list(['task', number, 'standings'], (cursor, signal) => {
    const params = { path: { task: number }, query: { limit: 200, ...cursor } }
    return api.GET('/v1/tasks/{task}/standings', { params, signal })
  })

export const round = (number: number, which: number) =>
  single(['task', number, 'round', which], (signal) => {
    const params = { path: { task: number, round: which } }
    return api.GET('/v1/tasks/{task}/rounds/{round}', { params, signal })
  })

export const nodes = (query: NodeQuery) =>
  list(['nodes', query], (cursor, signal) =>
    api.GET('/v1/nodes', { params: { query: { ...query, ...cursor } }, signal }),
  )

/** An account's nodes in all roles; empty without any. */
export const rolesOf = (account: string) =>
  single(['nodes', 'of', account], (signal) => api.GET('/v1/nodes', { params: { query: { account } }, signal }))

export const node = (account: string, role: Role) =>
  single(['node', account, role], (signal) =>
    api.GET('/v1/nodes/{node}/{role}', { params: { path: { node: account, role } }, signal }),
  )

export const nodeRecord = (account: string, role: Role) =>
  single(['node', account, role, 'record'], (signal) =>
    api.GET('/v1/nodes/{node}/{role}/record', { params: { path: { node: account, role } }, signal }),
  )

export const nodeHistory = (account: string, role: Role) =>
  list(['node', account, role, 'history'], (cursor, signal) => {
    const params = { path: { node: account, role }, query: { limit: 200, ...cursor } }
    return api.GET('/v1/nodes/{node}/{role}/history', { params, signal })
  })

export const payments = (query: Query<'/v1/payments'>) =>
  list(['payments', query], (cursor, signal) =>
    api.GET('/v1/payments', { params: { query: { ...query, ...cursor } }, signal }),
  )

export const delegations = (query: Query<'/v1/delegations'>) =>
  list(['delegations', query], (cursor, signal) =>
    api.GET('/v1/delegations', { params: { query: { ...query, ...cursor } }, signal }),
  )

export const unbondings = (account: string) =>
  list(['account', account, 'unbondings'], (cursor, signal) =>
    api.GET('/v1/accounts/{account}/unbondings', { params: { path: { account }, query: cursor }, signal }),
  )

export const history = (account: string) =>
  list(['account', account, 'history'], (cursor, signal) =>
    api.GET('/v1/accounts/{account}/history', { params: { path: { account }, query: cursor }, signal }),
  )

export const soldModels = (query: Query<'/v1/models'>) =>
  list(['models', query], (cursor, signal) =>
    api.GET('/v1/models', { params: { query: { ...query, ...cursor } }, signal }),
  )

export const soldModel = (number: number) =>
  single(['task', number, 'sales'], (signal) =>
    api.GET('/v1/models/{task}', { params: { path: { task: number } }, signal }),
  )

export const ensembles = (query: Query<'/v1/ensembles'>) =>
  list(['ensembles', query], (cursor, signal) =>
    api.GET('/v1/ensembles', { params: { query: { ...query, ...cursor } }, signal }),
  )

/** The ensembles that a task is a member of. */
export const ensemblesOf = (task: number) =>
  list(['task', task, 'ensembles'], (cursor, signal) =>
    api.GET('/v1/ensembles', { params: { query: { member: task, limit: 25, ...cursor } }, signal }),
  )

export const ensemble = (number: number) =>
  single(['task', number, 'ensemble'], (signal) =>
    api.GET('/v1/ensembles/{number}', { params: { path: { number } }, signal }),
  )
