/** What pages ask, by keys that live events can name: `['task', 3]` is everything about task 3. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type { paths } from '../generated/api'
import { answer, api, type Role } from './client'

type Query<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Q } } }
  ? NonNullable<Q>
  : never
export type TaskQuery = Omit<Query<'/v1/tasks'>, 'cursor'>
export type NodeQuery = Omit<Query<'/v1/nodes'>, 'cursor'>

const pages = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (last: { next: string | null }) => last.next ?? undefined,
}

function cursor(given: string | undefined): { cursor?: string } {
  return given === undefined ? {} : { cursor: given }
}

export const network = () =>
  queryOptions({ queryKey: ['network'], queryFn: ({ signal }) => answer(api.GET('/v1/network', { signal })) })

export const tasks = (query: TaskQuery) =>
  infiniteQueryOptions({
    ...pages,
    queryKey: ['tasks', query],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET('/v1/tasks', { params: { query: { ...query, ...cursor(pageParam) } }, signal })),
  })

export const task = (number: number) =>
  queryOptions({
    queryKey: ['task', number],
    queryFn: ({ signal }) =>
      answer(api.GET('/v1/tasks/{task}', { params: { path: { task: number } }, signal })),
  })

export const models = (number: number) =>
  queryOptions({
    queryKey: ['task', number, 'models'],
    queryFn: ({ signal }) =>
      answer(api.GET('/v1/tasks/{task}/models', { params: { path: { task: number } }, signal })),
    // No event tells of it: somebody derives it after the last.
    refetchInterval: ({ state }) => (state.data?.items.length ? false : 15_000),
  })

export const rounds = (number: number) =>
  infiniteQueryOptions({
    ...pages,
    queryKey: ['task', number, 'rounds'],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET('/v1/tasks/{task}/rounds', {
          params: { path: { task: number }, query: { limit: 200, ...cursor(pageParam) } },
          signal,
        }),
      ),
  })

export const round = (number: number, which: number) =>
  queryOptions({
    queryKey: ['task', number, 'round', which],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/v1/tasks/{task}/rounds/{round}', {
          params: { path: { task: number, round: which } },
          signal,
        }),
      ),
  })

export const proof = (number: number, which: number) =>
  queryOptions({
    queryKey: ['task', number, 'proof', which],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/v1/tasks/{task}/rounds/{round}/proof', {
          params: { path: { task: number, round: which } },
          signal,
        }),
      ),
  })

export const nodes = (query: NodeQuery) =>
  infiniteQueryOptions({
    ...pages,
    queryKey: ['nodes', query],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET('/v1/nodes', { params: { query: { ...query, ...cursor(pageParam) } }, signal })),
  })

/** An account in all its roles: no fault where it has none. */
export const rolesOf = (account: string) =>
  queryOptions({
    queryKey: ['nodes', 'of', account],
    queryFn: ({ signal }) => answer(api.GET('/v1/nodes', { params: { query: { account } }, signal })),
  })

export const node = (account: string, role: Role) =>
  queryOptions({
    queryKey: ['node', account, role],
    queryFn: ({ signal }) =>
      answer(api.GET('/v1/nodes/{node}/{role}', { params: { path: { node: account, role } }, signal })),
  })

export const nodeHistory = (account: string, role: Role) =>
  infiniteQueryOptions({
    ...pages,
    queryKey: ['node', account, role, 'history'],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET('/v1/nodes/{node}/{role}/history', {
          params: { path: { node: account, role }, query: { limit: 200, ...cursor(pageParam) } },
          signal,
        }),
      ),
  })

export const payments = (query: Omit<Query<'/v1/payments'>, 'cursor'>) =>
  infiniteQueryOptions({
    ...pages,
    queryKey: ['payments', query],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET('/v1/payments', { params: { query: { ...query, ...cursor(pageParam) } }, signal })),
  })

export const delegations = (query: Omit<Query<'/v1/delegations'>, 'cursor'>) =>
  infiniteQueryOptions({
    ...pages,
    queryKey: ['delegations', query],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET('/v1/delegations', { params: { query: { ...query, ...cursor(pageParam) } }, signal })),
  })

export const unbondings = (account: string) =>
  infiniteQueryOptions({
    ...pages,
    queryKey: ['account', account, 'unbondings'],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET('/v1/accounts/{account}/unbondings', {
          params: { path: { account }, query: cursor(pageParam) },
          signal,
        }),
      ),
  })

export const history = (account: string) =>
  infiniteQueryOptions({
    ...pages,
    queryKey: ['account', account, 'history'],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET('/v1/accounts/{account}/history', {
          params: { path: { account }, query: cursor(pageParam) },
          signal,
        }),
      ),
  })
