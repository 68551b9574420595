import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useSearchParams } from 'react-router'
import type { Schemas } from '../api/client'
import { found } from '../api/queries'
import { EnsembleLink } from '../market/offers'
import { Account, Fault, Page, TaskLink } from '../parts/basics'
import { NamedTask } from '../parts/tasks'
import * as say from '../strings'

const words = say.search
const PAUSE = 250 // milliseconds without a key, before the API is asked

export default function Search() {
  const [params, setParams] = useSearchParams()
  const [text, setText] = useState(params.get('q') ?? '')
  const asked = params.get('q') ?? ''
  useEffect(() => {
    const wanted = text.trim()
    if (wanted === asked) return
    const timer = setTimeout(() => setParams(wanted ? { q: wanted } : {}, { replace: true }), PAUSE)
    return () => clearTimeout(timer)
  }, [text, asked, setParams])
  return (
    <Page title={words.title} lead={words.lead}>
      <search>
        <label>
          {words.label}
          <input
            type="search"
            value={text}
            maxLength={100}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
      </search>
      <Found text={asked} />
    </Page>
  )
}

function Found({ text }: { text: string }) {
  const { data, error, refetch } = useQuery({ ...found(text), enabled: text !== '' })
  const items = text === '' ? undefined : data?.items
  return (
    <>
      {error && <Fault error={error} retry={() => void refetch()} />}
      <p role="status">{items && (items.length === 0 ? words.none : words.found(items.length))}</p>
      {items && items.length > 0 && (
        <ul className="card hits">
          {items.map((hit) => (
            <li key={`${hit.kind} ${hit.task ?? ''} ${hit.ensemble ?? ''} ${hit.account ?? ''} ${hit.role ?? ''}`}>
              <Hit of={hit} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function Hit({
  of: { kind, task = null, ensemble = null, round = null, account = null, role = null, name = null },
}: {
  of: Schemas['Hit']
}) {
  if (kind === 'task' && task !== null) return <NamedTask of={{ task, name }} />
  if (kind === 'ensemble' && ensemble !== null)
    return (
      <span>
        <EnsembleLink number={ensemble} /> {name !== null && <WithMember name={name} />}
      </span>
    )
  return (
    <span>
      {kind === 'transaction' ? words.transaction : role ? say.role[role] : say.account.title}{' '}
      {kind === 'transaction' && task !== null && <TaskLink task={task} round={round} />}{' '}
      {account && <Account of={account} as={role} />}
    </span>
  )
}

/** A member's name, by which people know an ensemble. */
function WithMember({ name }: { name: string }) {
  return (
    <span className="named soft">
      <span>{words.with}</span> <bdi className="clip">{name}</bdi>
    </span>
  )
}
