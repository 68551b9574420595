/** A whole address or hash, with a button that copies it, and a link to the block explorer of `config.json`. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { BASE, fetchInTime } from '../api/client'
import { fieldOf } from '../lib/fields'
import * as say from '../strings'
import { Hash } from './basics'
import { Copy } from './copy'

/** The explorer's URL without a slash at the end; null without one. The rest of the file is of no use here. */
const explorer = () =>
  queryOptions({
    queryKey: ['explorer'],
    staleTime: Infinity,
    retry: false,
    refetchInterval: false,
    queryFn: async ({ signal }) => {
      const response = await fetchInTime(new Request(`${BASE}/config.json`, { signal }))
      const url = response.ok ? fieldOf(await response.json(), 'explorer') : null
      return typeof url === 'string' && url.startsWith('https://') ? url.replace(/\/+$/, '') : null
    },
  })

/** `as`: the explorer's kind of page; without, it has none. `isShort`: as in a table. */
export function Exact({ of, as: kind, isShort }: { of: string; as?: 'address' | 'tx'; isShort?: boolean }) {
  const { data: url } = useQuery({ ...explorer(), enabled: kind !== undefined })
  return (
    <span className="exact">
      {isShort ? <Hash of={of} /> : <code className="wrap">{of}</code>}
      <Copy of={of} what={of} />
      {kind && url && (
        <a href={`${url}/${kind}/${of}`} target="_blank" rel="noreferrer">
          {say.explorer}
          <span className="visually-hidden"> {of}</span>
        </a>
      )}
    </span>
  )
}
