/** What a visitor watches, and where it is told: in this browser, or by the server. */
import { lazy, useState } from 'react'
import { useSearchParams } from 'react-router'
import { answer, api } from '../api/client'
import { messageOf } from '../lib/errors'
import { allowed, canShow } from '../lib/notifications'
import { keepList, useWatchList } from '../lib/watching'
import { Account, Card, Notice, OnDemand, Page, TaskLink } from '../parts/basics'
import { ConnectCard, useWallets } from '../parts/wallets'
import * as say from '../strings'
import { told as words } from '../strings/told'

const Away = lazy(() => import('../wallet/told'))

export default function Told() {
  const [params] = useSearchParams()
  const hasWallet = useWallets().length > 0
  return (
    <Page title={words.title} lead={words.lead}>
      {(['confirm', 'stop'] as const).map((what) => {
        const token = params.get(what)
        return token && <ByLink key={what + token} what={what} token={token} />
      })}
      <Here />
      <Listed />
      <Card title={words.away} means={words.awayMeans}>
        <OnDemand open={words.open}>
          {hasWallet ? (
            <Away />
          ) : (
            <ConnectCard>
              <p>{say.wallet.noWallet}</p>
            </ConnectCard>
          )}
        </OnDemand>
      </Card>
    </Page>
  )
}

type Step = { state: 'idle' | 'asking' | 'done' } | { state: 'failed'; why: string }

/** What a mail's link asks for. It takes a click: programs that check mails open its links, too. */
function ByLink({ what, token }: { what: 'confirm' | 'stop'; token: string }) {
  const [step, setStep] = useState<Step>({ state: 'idle' })
  const go = async () => {
    setStep({ state: 'asking' })
    try {
      await (what === 'confirm'
        ? answer(api.POST('/v1/watch/confirm', { body: { token } }))
        : answer(api.POST('/v1/watch/stop', { params: { query: { token } } })))
      setStep({ state: 'done' })
    } catch (error) {
      setStep({ state: 'failed', why: messageOf(error) })
    }
  }
  return (
    <Card title={words[what]} means={words[`${what}Means`]}>
      {step.state === 'done' ? (
        <Notice kind="good">{what === 'confirm' ? words.confirmed : words.stopped}</Notice>
      ) : (
        <div>
          <button type="button" className="main" disabled={step.state === 'asking'} onClick={() => void go()}>
            {words[what]}
          </button>
        </div>
      )}
      {step.state === 'failed' && <Notice kind="bad">{step.why}</Notice>}
    </Card>
  )
}

function Here() {
  const { isOn } = useWatchList()
  const [may, setMay] = useState(allowed)
  const turnOn = async () => {
    const now = may === 'default' ? await Notification.requestPermission() : may
    const isPossible = now !== 'granted' || canShow(words.title, words.isOn)
    setMay(isPossible ? now : 'unsupported')
    if (now === 'granted' && isPossible) keepList({ isOn: true })
  }
  const isShown = isOn && may === 'granted'
  return (
    <Card title={words.here} means={words.hereMeans}>
      <div role="status">{isShown && <p className="good">{words.isOn}</p>}</div>
      {may === 'denied' || may === 'unsupported' ? (
        <Notice kind="wait">{words[may]}</Notice>
      ) : (
        <div>
          {isShown ? (
            <button type="button" onClick={() => keepList({ isOn: false })}>
              {words.turnOff}
            </button>
          ) : (
            <button type="button" className="main" onClick={() => void turnOn()}>
              {words.turnOn}
            </button>
          )}
        </div>
      )}
    </Card>
  )
}

function Listed() {
  const { tasks, nodes } = useWatchList()
  const entries = [
    ...tasks.map((task) => ({
      key: String(task),
      link: <TaskLink task={task} />,
      without: { tasks: tasks.filter((one) => one !== task) },
    })),
    ...nodes.map((node) => ({
      key: node,
      link: <Account of={node} />,
      without: { nodes: nodes.filter((one) => one !== node) },
    })),
  ]
  return (
    <Card title={words.list} means={words.listMeans}>
      {entries.length === 0 && <p className="soft">{words.empty}</p>}
      <ul className="hits">
        {entries.map(({ key, link, without }) => (
          <li key={key} className="tools checked">
            {link}
            <button type="button" className="plain" onClick={() => keepList(without)}>
              {words.remove}
              <span className="visually-hidden"> {key}</span>
            </button>
          </li>
        ))}
      </ul>
    </Card>
  )
}
