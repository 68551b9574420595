/** Stores a task file, then pays for the task and proposes it. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { Link } from 'react-router'
import { keccak256, parseEventLogs, stringToBytes, type Address, type Hash } from 'viem'
import { answer, api, type Schemas } from '../api/client'
import { tasks as tasksOf } from '../api/queries'
import { tasksAbi } from '../generated/abi'
import { formatTokens } from '../lib/amounts'
import { isDevelopment } from '../lib/development'
import { taskParams } from '../lib/terms'
import { Facts, Notice, Tokens } from '../parts/basics'
import { fileOf } from '../propose/check'
import { keep, kept } from '../propose/kept'
import * as say from '../strings'
import { propose as words } from '../strings/propose'
import { Connected } from './connect'
import { refusal } from './errors'
import { useBalance, useNetwork } from './provider'
import { isBusy, SendingNotice, useApproved, useCalls, useSending } from './sending'
import { useSession } from './session'

interface Ready {
  text: string
  terms: Schemas['Terms']
  aggregator: Address
  isPrivate: boolean
}

/** `isCurrent`: the valid file is the one on the page. Steps that were begun with it go on in any case. */
export default function Propose({ of, isCurrent }: { of: Ready; isCurrent: boolean }) {
  return <Connected>{(account) => <Steps account={account} of={of} isCurrent={isCurrent} />}</Connected>
}

function Steps({ account, of, isCurrent }: { account: Address; of: Ready; isCurrent: boolean }) {
  const network = useNetwork()
  const balance = useBalance(account)
  const { storing, store } = useStoring(account)
  const flow = useSending()
  const { sending, send } = flow
  const { tasks } = useCalls()
  const approvals = { account, contract: 'tasks' } as const
  const approved = useApproved(approvals)
  const [proposed, setProposed] = useState<{ task: number; by: string } | null>(null)
  const [isMeant, setIsMeant] = useState(false)
  const { data: mine } = useInfiniteQuery(tasksOf({ operator: account, limit: 200 }))
  const hash = keccak256(stringToBytes(of.text)) // the server's own is not trusted
  const pool = BigInt(of.terms.pool) * BigInt(of.terms.shards)
  const lacks = balance === undefined ? 0n : pool - balance
  const lacksBlobs = !of.terms.digests && !network.blobs
  const known = mine?.pages.flatMap((page) => page.items) ?? []
  const already = known.find((one) => one.spec_hash === hash && one.phase !== 'ended')
  const { data: isKept } = useQuery({
    queryKey: ['stored', hash],
    enabled: kept()?.stored === hash, // another file would be a 404
    queryFn: async () => (await fileOf(hash)) === of.text,
  })
  const isStored = isKept === true || (storing.state === 'stored' && storing.hash === hash)
  const isStoring = storing.state === 'signing' || storing.state === 'storing'
  const isDone = proposed?.by === hash
  const isPossible = balance !== undefined && lacks <= 0n && !lacksBlobs
  const isAllowed = isCurrent && (of.isPrivate || isMeant)
  const canGo = isAllowed && isPossible && !isBusy(sending) && !isStoring && !isDone

  async function propose() {
    const proposal = tasks('propose', taskParams(of.terms, hash, of.aggregator))
    const receipt = await send(...approved(pool, proposal))
    if (!receipt) return
    const [event] = parseEventLogs({ abi: tasksAbi, eventName: 'TaskProposed', logs: receipt.logs })
    if (event) setProposed({ task: Number(event.args.taskId), by: hash })
    keep(null)
  }

  return (
    <>
      <Facts
        of={[
          [say.balance, <Tokens key="balance" of={balance} />],
          [words.toPay, <Tokens key="pool" of={pool} />],
          ...(balance !== undefined && lacks <= 0n ? [[words.left, <Tokens key="left" of={-lacks} />] as const] : []),
        ]}
      />
      {!isCurrent && <Notice kind="wait">{words.changed}</Notice>}
      {!isDone && lacks > 0n && (
        <Notice kind="bad">
          <span>{words.poor(formatTokens(lacks))}</span>
          {isDevelopment(network) && <Link to="/wallet">{say.setup.step.funds}</Link>}
        </Notice>
      )}
      {lacksBlobs && <Notice kind="bad">{words.noBlobs}</Notice>}
      {already && !isDone && <Notice kind="wait">{words.already(already.task)}</Notice>}
      {!of.isPrivate && !isDone && (
        <label className="notice wait">
          <input type="checkbox" checked={isMeant} onChange={(event) => setIsMeant(event.target.checked)} />
          {words.withoutPrivacy}
        </label>
      )}
      <ol className="steps acts">
        <Act
          mark="a"
          name={words.store}
          means={words.storeMeans}
          isDone={isStored}
          isNext={!isStored}
          canGo={canGo && !isStored}
          go={() => void store(of.text, hash)}
        >
          <div role={storing.state === 'failed' ? 'alert' : 'status'} data-news>
            {storing.state === 'failed' && <p className="notice bad">{storing.why}</p>}
            {(storing.state === 'signing' || storing.state === 'storing') && (
              <p className="notice wait">{words.storing[storing.state]}</p>
            )}
            {isStored && <p className="good">{words.stored}</p>}
          </div>
        </Act>
        <Act
          mark="b"
          name={words.pay}
          means={words.payMeans(formatTokens(pool))}
          isDone={isDone}
          isNext={isStored && !isDone}
          canGo={canGo && isStored}
          go={() => void propose()}
        >
          <SendingNotice of={flow} approvals={approvals} />
          {proposed && isDone && (
            <Notice kind="good">
              <span>{words.proposed(proposed.task)}</span>
              {known.some((one) => one.task === proposed.task) ? (
                <Link to={`/tasks/${proposed.task}`}>{words.follow}</Link>
              ) : (
                <span>{words.notIndexed}</span>
              )}
            </Notice>
          )}
        </Act>
      </ol>
    </>
  )
}

/** One step of the proposal. */
function Act(props: {
  mark: string
  name: string
  means: string
  isDone: boolean
  isNext: boolean
  canGo: boolean
  go: () => void
  children: ReactNode
}) {
  return (
    <li data-state={props.isDone ? 'holds' : 'waits'}>
      <span className="mark" aria-hidden="true">
        {props.isDone ? '✓' : props.mark}
      </span>
      <div className="stack">
        <div>
          <button
            type="button"
            className={props.isNext ? 'main' : ''}
            disabled={!props.canGo}
            onClick={() => props.canGo && props.go()} // a script's click comes through a disabled button
          >
            {props.name}
          </button>
        </div>
        <p className="soft small">{props.means}</p>
        {props.children}
      </div>
    </li>
  )
}

type Storing =
  { state: 'idle' | 'signing' | 'storing' } | { state: 'stored'; hash: Hash } | { state: 'failed'; why: string }

/** Stores files under their hash. The server asks for Sign-In with Ethereum. */
function useStoring(account: Address) {
  const { ask } = useSession(account, words.statement)
  const [storing, setStoring] = useState<Storing>({ state: 'idle' })

  async function store(text: string, wanted: Hash) {
    setStoring({ state: 'signing' })
    try {
      const { hash } = await ask((headers) => {
        setStoring({ state: 'storing' })
        return answer(api.PUT('/v1/artifacts/files', { body: { text }, headers }))
      })
      if (hash === wanted) keep({ stored: hash })
      setStoring(hash === wanted ? { state: 'stored', hash } : { state: 'failed', why: words.otherHash })
    } catch (error) {
      setStoring({ state: 'failed', why: refusal(error) })
    }
  }
  return { storing, store }
}
