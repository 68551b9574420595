/** The choice of a node: from the API's list, or by its address. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Role } from '../api/client'
import { nodes } from '../api/queries'
import { isAccount, shortened } from '../lib/accounts'
import { yieldOf } from '../lib/yields'
import { formatBps, formatMillionths } from '../lib/amounts'
import { ROLE_NAMES } from '../lib/enums'
import { Choice } from '../parts/choice'
import * as say from '../strings'
import { pick as words } from '../strings/earnings'

const OTHER = 'other'

export interface Picked {
  node: string
  role: Role
}

/** `change` gets null while no node is chosen. */
export function PickNode({ role: first, change }: { role: Role; change: (picked: Picked | null) => void }) {
  const [role, setRole] = useState(first)
  const [pick, setPick] = useState('')
  const [typed, setTyped] = useState('')
  const { data, error, hasNextPage, fetchNextPage } = useInfiniteQuery(
    nodes({ role, sort: '-yield', days: 30, limit: 50 }),
  )
  const listed = data?.pages.flatMap((page) => page.items) ?? []
  const isTyping = pick === OTHER || (error !== null && !data)
  const tell = (node: string, of: Role) => change(isAccount(node.trim()) ? { node: node.trim(), role: of } : null)
  return (
    <>
      <Choice
        name={say.columns.role}
        value={role}
        of={ROLE_NAMES}
        change={(chosen) => {
          setRole(chosen)
          setPick('')
          tell(typed, chosen)
        }}
      />
      {data && (
        <Choice
          name={say.columns.node}
          value={pick}
          of={[
            ['', words.none],
            ...listed.map((one) => {
              const found = yieldOf(one)
              const rate = found ? words.rate(formatMillionths(found.net, true)) : say.decide.isNew
              return [one.node, words.option(shortened(one.node), rate, formatBps(one.commission_bps))] as const
            }),
            [OTHER, words.other],
          ]}
          change={(chosen) => {
            setPick(chosen)
            tell(chosen === OTHER ? typed : chosen, role)
          }}
        />
      )}
      {hasNextPage && (
        <button type="button" className="plain" onClick={() => void fetchNextPage()}>
          {say.more}
        </button>
      )}
      {isTyping && (
        <label>
          {words.address}
          <input
            value={typed}
            autoComplete="off"
            spellCheck={false}
            placeholder={say.account.lookHint}
            aria-invalid={typed !== '' && !isAccount(typed.trim())}
            onChange={(event) => {
              setTyped(event.target.value)
              tell(event.target.value, role)
            }}
          />
        </label>
      )}
    </>
  )
}
