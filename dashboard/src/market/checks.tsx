/** The checks of a receipt, each with its result in a word, and the model run again on its rows. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Config } from '../api/config'
import { formatBytes } from '../lib/amounts'
import { isEnsemble } from '../lib/ensembles'
import { messageOf } from '../lib/errors'
import { checked, fileOf, rowsIn, type Bought, type Finding } from '../lib/selling'
import { Account, Facts, Notice, TaskLink, Tokens } from '../parts/basics'
import { EnsembleLink } from './offers'
import * as say from '../strings'
import { useSold } from './sold'

const words = say.market
const RUNTIME_BYTES = 3_700_000 // of onnxruntime-web, as a server sends it

/** `more`: findings about the payment, which only its buyer can make. */
export function Checks({ network, of, more = [] }: { network: Config; of: Bought; more?: readonly Finding[] }) {
  const number = Number(of.receipt.taskId)
  const sold = useSold(network, number)
  const { data: findings } = useQuery({
    queryKey: ['receipt', fileOf(of), sold?.sha256 ?? ''],
    queryFn: () => checked(network, of, sold?.sha256 ?? null),
    enabled: sold !== undefined,
    staleTime: Infinity,
  })
  const [again, setAgain] = useState<Finding | Error>()
  if (!findings || !sold) return null
  const rerun: Finding =
    again && !(again instanceof Error) ? again : { check: 'predictions', holds: null, compared: [] }
  const all = [...findings, ...more, rerun]
  const run = async () => {
    setAgain(undefined)
    const { recomputed } = await import('./recompute')
    setAgain(await recomputed(sold.parts, of).catch((error: unknown) => new Error(messageOf(error))))
  }
  return (
    <section className="stack" aria-label={words.receipt}>
      <Facts
        of={[
          [
            isEnsemble(number) ? words.anEnsemble : say.columns.task,
            isEnsemble(number) ? <EnsembleLink key="task" number={number} /> : <TaskLink key="task" task={number} />,
          ],
          [words.server, <Account key="server" of={of.receipt.server} />],
          [words.charged, <Tokens key="amount" of={of.receipt.amount} isExact />],
          [say.columns.rows, rowsOf(of)],
        ]}
      />
      <ol className="steps" aria-label={words.receipt}>
        {all.map((one) => (
          <Line key={one.check} of={one} />
        ))}
      </ol>
      <Verdict of={all} />
      {again instanceof Error && <Notice kind="bad">{again.message}</Notice>}
      {sold.bytes !== null ? (
        <div className="tools">
          <button type="button" onClick={() => void run()}>
            {words.rerun}
          </button>
          <span className="soft small">{words.rerunMeans(formatBytes(sold.bytes + RUNTIME_BYTES))}</span>
        </div>
      ) : (
        <p className="soft small">{words.noModel}</p>
      )}
      <p className="small">
        <a href={`data:application/json,${encodeURIComponent(fileOf(of))}`} download={`receipt-task-${number}.json`}>
          {words.download}
        </a>
      </p>
    </section>
  )
}

function rowsOf({ request }: Bought): string {
  try {
    return String(rowsIn(request).length)
  } catch {
    return '–'
  }
}

const STATES = { true: 'holds', false: 'fails', null: 'open' } as const

function Line({ of }: { of: Finding }) {
  const state = STATES[`${of.holds}`]
  return (
    <li data-state={state}>
      <span className="mark" aria-hidden="true">
        {state === 'holds' ? '✓' : state === 'fails' ? '✗' : '–'}
      </span>
      <div>
        {words.checks[of.check]}: <strong className="state">{words.state[state]}</strong>
        {of.holds !== null &&
          [...new Set(of.compared)].map((one) => (
            <p key={one} className="small soft wrap">
              <code>{one}</code>
            </p>
          ))}
      </div>
    </li>
  )
}

function Verdict({ of }: { of: readonly Finding[] }) {
  const verdict = of.some(({ holds }) => holds === false)
    ? 'fails'
    : of.some(({ holds }) => holds === null)
      ? 'partly'
      : 'holds'
  const kind = { fails: 'bad', partly: 'good', holds: 'good' } as const
  return (
    <p className={`notice ${kind[verdict]}`} role={verdict === 'fails' ? 'alert' : 'status'} data-verdict={verdict}>
      <strong>{words.verdict[verdict]}</strong>
    </p>
  )
}
