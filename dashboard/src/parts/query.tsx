/** The answer to a query; until it is there, that it is loading or has failed. An earlier answer stays in sight. */
import {
  useInfiniteQuery,
  useQuery,
  type DefaultError,
  type InfiniteData,
  type QueryKey,
  type UseInfiniteQueryOptions,
  type UseQueryOptions,
} from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import * as say from '../strings'
import { Fault, Loading } from './basics'

export function Loaded<T, Key extends QueryKey>(props: {
  query: UseQueryOptions<T, DefaultError, T, Key>
  children: (found: T) => ReactNode
}) {
  const { data, error, refetch } = useQuery(props.query)
  return (
    <>
      {error && <Fault error={error} retry={() => void refetch()} />}
      {data !== undefined ? props.children(data) : !error && <Loading isTall />}
    </>
  )
}

/** A list that the API gives page by page. */
export type ListQuery<Item, Key extends QueryKey> = UseInfiniteQueryOptions<
  { items: Item[]; next: string | null },
  DefaultError,
  InfiniteData<{ items: Item[]; next: string | null }>,
  Key,
  string | undefined
>

/** `few`: its items at first. One button brings the others, and then the next page. */
export function LoadedList<Item, Key extends QueryKey>(props: {
  query: ListQuery<Item, Key>
  children: (items: Item[]) => ReactNode
  isTall?: boolean
  few?: number
}) {
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(props.query)
  const [most, setMost] = useState(props.few ?? Infinity)
  const items = data?.pages.flatMap((page) => page.items)
  const hidesSome = items !== undefined && items.length > most
  return (
    <>
      {error && <Fault error={error} retry={() => void refetch()} />}
      {items
        ? props.children(hidesSome ? items.slice(0, most) : items)
        : !error && <Loading isTall={props.isTall ?? false} />}
      {(hidesSome || hasNextPage) && (
        <div>
          <button
            type="button"
            disabled={isFetchingNextPage}
            onClick={() => {
              setMost(Infinity)
              if (!hidesSome) void fetchNextPage()
            }}
          >
            {say.more}
          </button>
        </div>
      )}
    </>
  )
}
