/** Where the server tells an account: a webhook, an e-mail address, and its list. */
import { useState } from 'react'
import type { Address } from 'viem'
import { answer, api, type Schemas } from '../api/client'
import { keepList, useWatchList } from '../lib/watching'
import { Notice } from '../parts/basics'
import { Command } from '../parts/command'
import { told as words } from '../strings/told'
import { Connected } from './connect'
import { refusal } from './errors'
import { useSession } from './session'

type Kind = Schemas['Channel']['kind']

export default function Away() {
  return <Connected>{(account) => <Channels key={account} account={account} />}</Connected>
}

function Channels({ account }: { account: Address }) {
  const { ask } = useSession(account, words.statement)
  const [known, setKnown] = useState<Schemas['Watch'] | null>(null)
  const [secret, setSecret] = useState('')
  const [step, setStep] = useState<'idle' | 'asking' | { why: string }>('idle')
  const isBusy = step === 'asking'

  /** Calls, and shows what the server has then. */
  const act = (call?: (headers: { Authorization: string }) => Promise<unknown>) => {
    setStep('asking')
    void ask(async (headers) => {
      await call?.(headers)
      setKnown(await answer(api.GET('/v1/watch', { headers })))
    }).then(
      () => setStep('idle'),
      (error: unknown) => setStep({ why: refusal(error) }),
    )
  }
  const set = (kind: Kind, typed: string) =>
    act(async (headers) => {
      const address = kind === 'mailto' ? `mailto:${typed}` : typed
      setSecret((await answer(api.PUT('/v1/watch/channels', { body: { address }, headers }))).secret)
    })
  const forget = (kind: Kind) =>
    act(async (headers) => {
      const params = { path: { kind } }
      await answer(api.DELETE('/v1/watch/channels/{kind}', { params, headers }))
    })
  return (
    <>
      {!known && (
        <div>
          <button type="button" className="main" disabled={isBusy} onClick={() => act()}>
            {words.signIn}
          </button>
        </div>
      )}
      <div role="status">{isBusy && !known && <Notice kind="wait">{words.signing}</Notice>}</div>
      {typeof step === 'object' && <Notice kind="bad">{step.why}</Notice>}
      {known && known.offers.length === 0 && <Notice kind="wait">{words.off}</Notice>}
      {known &&
        (['https', 'mailto'] as const).map((kind) => (
          <OneChannel
            key={kind}
            kind={kind}
            known={known}
            isBusy={isBusy}
            set={(typed) => set(kind, typed)}
            forget={() => forget(kind)}
          />
        ))}
      {secret && (
        <div className="stack">
          <p>{words.secret}</p>
          <Command of={secret} />
        </div>
      )}
      {known && (
        <ServersList
          of={known}
          isBusy={isBusy}
          send={(body) => act((headers) => answer(api.PUT('/v1/watch', { body, headers })))}
        />
      )}
    </>
  )
}

function OneChannel(props: {
  kind: Kind
  known: Schemas['Watch']
  isBusy: boolean
  set: (typed: string) => void
  forget: () => void
}) {
  const { kind, known, isBusy } = props
  const channel = known.channels.find((one) => one.kind === kind)
  const isOffered = known.offers.includes(kind)
  return (
    <form
      className="stack"
      aria-label={words.kind[kind]}
      onSubmit={(event) => {
        event.preventDefault()
        const typed = new FormData(event.currentTarget).get('address')
        if (typeof typed === 'string') props.set(typed.trim())
      }}
    >
      <div className="tools">
        <label>
          {words.kind[kind]}
          <input
            name="address"
            type={kind === 'https' ? 'url' : 'email'}
            size={40}
            required
            maxLength={300}
            autoComplete="off"
            placeholder={words.hint[kind]}
            defaultValue={channel?.address}
            disabled={!isOffered}
          />
        </label>
        <button type="submit" disabled={isBusy || !isOffered}>
          {words.set}
        </button>
        {channel && (
          <button type="button" className="plain" disabled={isBusy} onClick={props.forget}>
            {words.forget}
          </button>
        )}
      </div>
      <p className={channel?.state === 'confirmed' ? 'good small' : 'soft small'} role="status">
        {channel ? `${channel.address} ${words.state[channel.state][kind]}` : !isOffered && words.notOffered}
      </p>
    </form>
  )
}

function ServersList(props: {
  of: Schemas['Watch']
  isBusy: boolean
  send: (list: { tasks: number[]; nodes: string[] }) => void
}) {
  const { tasks, nodes } = useWatchList()
  const theirs = { tasks: props.of.tasks, nodes: props.of.nodes.map((one) => one.toLowerCase()) }
  const sorted = (list: { tasks: readonly number[]; nodes: readonly string[] }) =>
    JSON.stringify([list.tasks.toSorted((one, other) => one - other), list.nodes.toSorted()])
  if (sorted(theirs) === sorted({ tasks, nodes })) return <p className="soft small">{words.isSame}</p>
  return (
    <div className="notice wait">
      <span>{words.differs}</span>
      <span className="tools">
        <button
          type="button"
          disabled={props.isBusy}
          onClick={() => props.send({ tasks: [...tasks], nodes: [...nodes] })}
        >
          {words.sendList}
        </button>
        <button type="button" disabled={props.isBusy} onClick={() => keepList(theirs)}>
          {words.takeList}
        </button>
      </span>
    </div>
  )
}
