/** Stores a task file, pays for the task and proposes it; each step once the one before it has gone through. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'react-router'
import { parseEventLogs, type Address } from 'viem'
import { useReadContract } from 'wagmi'
import type { Schemas } from '../api/client'
import { tasks } from '../api/queries'
import { tasksAbi, tokenAbi } from '../generated/abi'
import { formatTokens } from '../lib/amounts'
import { taskParams } from '../lib/terms'
import { Facts, Tokens } from '../parts/basics'
import { say } from '../strings'
import { Connect } from './connect'
import { usePlace, WithWallet } from './provider'
import { isBusy, SendingNotice, useSending } from './sending'
import { fileHash, useStoring } from './storing'

const words = say.propose

interface Ready {
  text: string
  terms: Schemas['Terms']
  aggregator: Address
  isPrivate: boolean
}

/** `isCurrent`: the file that held is the one that is shown. What was begun with it is told to its end all the same. */
export default function Propose({ of, isCurrent }: { of: Ready; isCurrent: boolean }) {
  return (
    <WithWallet>
      <Connect>
        {(account) => <Steps account={account} of={of} isCurrent={isCurrent} key={account} />}
      </Connect>
    </WithWallet>
  )
}

function Steps({ account, of, isCurrent }: { account: Address; of: Ready; isCurrent: boolean }) {
  const place = usePlace()
  const { storing, store } = useStoring(account)
  const { sending, send } = useSending()
  const [proposed, setProposed] = useState<{ task: number; by: string } | null>(null)
  const [isMeant, setIsMeant] = useState(false)
  const { data: balance } = useReadContract({
    address: place.token,
    abi: tokenAbi,
    functionName: 'balanceOf',
    args: [account],
  })
  const { data: mine } = useInfiniteQuery(tasks({ operator: account, limit: 200 }))
  const hash = fileHash(of.text)
  const pool = BigInt(of.terms.pool)
  const lacks = balance === undefined ? 0n : pool - balance
  const lacksBlobs = !of.terms.digests && !place.blobs
  const known = mine?.pages.flatMap((page) => page.items) ?? []
  const already = known.find((one) => one.spec_hash === hash && one.phase !== 'ended')
  const isStored = storing.state === 'stored' && storing.hash === hash
  const busy = isBusy(sending) || storing.state === 'signing' || storing.state === 'storing'
  const isDone = proposed?.by === hash
  const isAllowed = of.isPrivate || isMeant
  const canGo =
    isCurrent && isAllowed && balance !== undefined && lacks <= 0n && !lacksBlobs && !busy && !isDone

  async function go() {
    const receipt = await send(
      { address: place.token, abi: tokenAbi, functionName: 'approve', args: [place.tasks, pool] },
      {
        address: place.tasks,
        abi: tasksAbi,
        functionName: 'propose',
        args: [taskParams(of.terms, hash, of.aggregator)],
      },
    )
    if (!receipt) return
    const [event] = parseEventLogs({ abi: tasksAbi, eventName: 'TaskProposed', logs: receipt.logs })
    if (event) setProposed({ task: Number(event.args.taskId), by: hash })
  }

  return (
    <>
      <Facts
        of={[
          [words.balance, <Tokens key="balance" of={balance ?? 0n} />],
          [words.toPay, <Tokens key="pool" of={pool} />],
          ...(balance !== undefined && lacks <= 0n
            ? [[words.left, <Tokens key="left" of={-lacks} />] as const]
            : []),
        ]}
      />
      {!isCurrent && <p className="notice wait">{words.changed}</p>}
      {!isDone && lacks > 0n && (
        <p className="notice bad" role="alert">
          {words.poor(formatTokens(lacks))}
        </p>
      )}
      {lacksBlobs && (
        <p className="notice bad" role="alert">
          {words.noBlobs}
        </p>
      )}
      {already && !isDone && <p className="notice wait">{words.already(already.task)}</p>}
      {!of.isPrivate && !isDone && (
        <label className="notice wait">
          <input type="checkbox" checked={isMeant} onChange={(event) => setIsMeant(event.target.checked)} />
          {words.withoutPrivacy}
        </label>
      )}
      <ol className="steps acts">
        <li data-state={isStored ? 'holds' : 'waits'}>
          <span className="mark" aria-hidden="true">
            {isStored ? '✓' : 'a'}
          </span>
          <div className="stack">
            <div>
              <button
                type="button"
                className={isStored ? '' : 'main'}
                disabled={!canGo || isStored}
                onClick={() => void store(of.text)}
              >
                {words.store}
              </button>
            </div>
            <p className="soft small">{words.storeMeans}</p>
            <div role={storing.state === 'failed' ? 'alert' : 'status'}>
              {storing.state === 'failed' && <p className="notice bad">{storing.why}</p>}
              {(storing.state === 'signing' || storing.state === 'storing') && (
                <p className="notice wait">{words.storing[storing.state]}</p>
              )}
              {isStored && <p className="good">{words.stored}</p>}
            </div>
          </div>
        </li>
        <li data-state={isDone ? 'holds' : 'waits'}>
          <span className="mark" aria-hidden="true">
            {isDone ? '✓' : 'b'}
          </span>
          <div className="stack">
            <div>
              <button
                type="button"
                className={isStored && !isDone ? 'main' : ''}
                disabled={!canGo || !isStored}
                onClick={() => void go()}
              >
                {words.pay}
              </button>
            </div>
            <p className="soft small">{words.payMeans(formatTokens(pool))}</p>
            <SendingNotice of={sending} />
            {proposed && isDone && (
              <p className="notice good">
                <span>{words.proposed(proposed.task)}</span>
                {known.some((one) => one.task === proposed.task) ? (
                  <Link to={`/tasks/${proposed.task}`}>{words.follow}</Link>
                ) : (
                  <span>{words.notIndexed}</span>
                )}
              </p>
            )}
          </div>
        </li>
      </ol>
    </>
  )
}
