import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useId, useRef, useState } from 'react'
import type { Address } from 'viem'
import type { Schemas } from '../api/client'
import { config, exampleTask } from '../api/config'
import { nodes, tasks } from '../api/queries'
import { formatBps, formatTokens, formatWhole } from '../lib/amounts'
import { treeOf } from '../lib/taskform'
import { Account, Card, Fault, Later, Loading, Page } from '../parts/basics'
import { Choice } from '../parts/choice'
import { ListedTable } from '../parts/table'
import { fileOf, LONGEST, taskSchema, useCheck, type Checking, type Draft } from '../propose/check'
import { Costs } from '../propose/costs'
import example from '../propose/example.toml?raw'
import { TaskForm } from '../propose/form'
import { keep, kept } from '../propose/kept'
import * as say from '../strings'
import { propose as words } from '../strings/propose'

const Sign = lazy(() => import('../wallet/propose'))
const { columns } = say

const AGGREGATORS = nodes({ role: 'aggregator', sort: '-assets', limit: 50 })

export default function Propose() {
  const { data: network, error } = useQuery(config())
  const { data: given, error: missing } = useQuery({ ...exampleTask(), enabled: network?.hasExample === true })
  const isFallback = error !== null || missing !== null || network?.hasExample === false
  const first = isFallback ? example : given
  if (first !== undefined) return <Editor example={first} />
  return (
    <Page title={words.title} lead={words.lead}>
      <Loading isTall />
    </Page>
  )
}

/** `example`: the file that the page begins with, unless this tab has a draft. */
function Editor({ example }: { example: string }) {
  const [before] = useState(kept)
  const [draft, setDraft] = useState<Draft>(before?.draft ?? { text: example })
  const [chosen, choose] = useState<string | null>(before?.aggregator ?? null)
  const { data } = useInfiniteQuery(AGGREGATORS)
  const known = data?.pages.flatMap((page) => page.items) ?? []
  const aggregator = known.find((one) => one.node === chosen) ?? (known.length === 1 ? (known[0] ?? null) : null)
  const checking = useCheck(draft)
  const { found, valid, isFresh } = checking
  function change(next: Draft) {
    setDraft(next)
    keep({ draft: next })
  }
  return (
    <Page title={words.title} lead={words.lead}>
      <div className="beside">
        <TheTask draft={draft} set={change} example={example} checking={checking} />
        <Card title={words.costs}>
          {found && !found.holds && valid && <p className="soft">{words.costsBefore}</p>}
          {valid ? <Costs of={valid.task} /> : <p className="soft">{words.costsWait}</p>}
        </Card>
      </div>
      <Later>
        <Aggregator
          bond={valid ? BigInt(valid.task.terms.aggregator_bond) : null}
          chosen={aggregator}
          choose={({ node }) => {
            choose(node)
            keep({ aggregator: node as Address })
          }}
        />
      </Later>
      <Later>
        <Card title={words.sign}>
          {valid && aggregator ? (
            <Suspense fallback={<Loading />}>
              <Sign
                of={{
                  text: valid.text,
                  terms: valid.task.terms,
                  aggregator: aggregator.node as Address,
                  isPrivate: valid.task.spec.privacy !== null,
                }}
                isCurrent={isFresh && found?.holds === true}
              />
            </Suspense>
          ) : (
            <p className="soft">{words.signWait}</p>
          )}
        </Card>
      </Later>
    </Page>
  )
}

interface TaskProps {
  draft: Draft
  set: (draft: Draft) => void
  example: string
  checking: Checking
}

/** The form and the file, of which the server makes one from the other. While it does, only the changed one is open. */
function TheTask({ draft, set, example, checking }: TaskProps) {
  const { data: schema, error } = useQuery(taskSchema())
  const { found, isFresh, checkNow } = checking
  const ref = useRef<HTMLFormElement>(null)
  const isSent = useRef(false)
  const document = 'document' in draft ? draft.document : found?.document ? treeOf(found.document) : null
  const isOpen = 'document' in draft || (isFresh && document !== null)
  const faults = isFresh ? (found?.faults ?? []) : []
  useEffect(() => {
    if (!isFresh || !isSent.current) return
    isSent.current = false
    showFault(ref.current)
  }, [isFresh, found])
  return (
    <Card title={words.file} means={words.fileMeans}>
      <Start set={(text) => set({ text })} example={example} />
      <form
        ref={ref}
        noValidate
        className="stack"
        aria-label={words.form}
        onSubmit={(event) => {
          event.preventDefault()
          if (isFresh) showFault(ref.current)
          else isSent.current = true
          checkNow()
        }}
      >
        {error && <Fault error={error} />}
        {schema && document ? (
          <fieldset className="whole stack" disabled={!isOpen}>
            <TaskForm root={schema} document={document} faults={faults} change={(next) => set({ document: next })} />
          </fieldset>
        ) : (
          !error && (isFresh && !found?.document ? <p className="soft">{words.noForm}</p> : <Loading isTall />)
        )}
        <div className="tools checked">
          <button type="submit" disabled={checking.isBusy}>
            {words.check}
          </button>
          <p role="status" className={isFresh && found?.holds ? 'good' : 'soft'}>
            {stateOf(draft, checking)}
          </p>
        </div>
        {checking.error && <Fault error={checking.error} />}
        {faults.length > 0 && <Faults of={faults} />}
      </form>
      <File draft={draft} set={(text) => set({ text })} checking={checking} />
    </Card>
  )
}

/** Moves the focus to the first field with a fault, or else to the list of faults. */
function showFault(form: HTMLFormElement | null) {
  const fault =
    form?.querySelector<HTMLElement>('[aria-invalid=true]') ?? form?.querySelector<HTMLElement>('[role=alert]')
  for (let one = fault?.closest('details'); one; one = one.parentElement?.closest('details')) one.open = true
  fault?.focus()
}

function File({ draft, set, checking }: { draft: Draft; set: (text: string) => void; checking: Checking }) {
  const { found, isFresh } = checking
  const isWritten = 'text' in draft || isFresh
  const text = 'text' in draft ? draft.text : (found?.text ?? '')
  const means = useId()
  return (
    <details>
      <summary>{words.itself}</summary>
      <div className="stack">
        <p id={means} className="soft small">
          {words.inStep}
        </p>
        <label className="file">
          {words.text}
          <textarea
            value={text}
            readOnly={!isWritten}
            spellCheck={false}
            autoComplete="off"
            autoCapitalize="off"
            wrap="off"
            rows={22}
            aria-describedby={means}
            onChange={(event) => set(event.target.value)}
          />
        </label>
        <div>
          <button type="button" disabled={!isWritten} onClick={() => save(text)}>
            {words.download}
          </button>
        </div>
      </div>
    </details>
  )
}

function save(text: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/toml' }))
  link.download = 'task.toml'
  link.click()
  URL.revokeObjectURL(link.href)
}

function stateOf(draft: Draft, { isBusy, isFresh, error, found }: Checking): string {
  if ('text' in draft && draft.text === '') return words.empty
  if ('text' in draft && draft.text.length > LONGEST) return words.tooLong(formatWhole(LONGEST))
  if (isBusy) return words.checking
  if (isFresh) return found?.holds ? words.holds : ''
  return error ? '' : words.unchecked
}

function Faults({ of }: { of: Schemas['Check']['faults'] }) {
  return (
    <div className="notice bad" role="alert" tabIndex={-1}>
      <div className="stack">
        <strong>{words.faults(of.length)}</strong>
        <ul className="faults">
          {of.map((fault, index) => (
            <li key={index}>
              {fault.where === '' ? '' : `${fault.where}: `}
              {fault.what}
            </li>
          ))}
        </ul>
      </div>
    </div>
  )
}

function Start({ set, example }: { set: (text: string) => void; example: string }) {
  const { data } = useInfiniteQuery(tasks({ sort: '-task', limit: 50 }))
  const [from, setFrom] = useState('')
  const [error, setError] = useState<unknown>(null)
  const id = useId()
  const named = data?.pages.flatMap((page) => page.items).filter((one) => one.name !== null) ?? []

  async function take() {
    setError(null)
    try {
      const task = named.find((one) => String(one.task) === from)
      set(task ? await fileOf(task.spec_hash) : example)
    } catch (failed) {
      setError(failed)
    }
  }

  return (
    <>
      <div className="tools">
        <Choice
          name={words.startFrom}
          value={from}
          of={[
            ['', words.example],
            ...named.map((one) => [String(one.task), words.taskFile(one.task, one.name ?? '')] as const),
          ]}
          change={setFrom}
        />
        <button type="button" onClick={() => void take()}>
          {words.take}
        </button>
        <label htmlFor={id}>
          {words.upload}
          <input
            id={id}
            type="file"
            accept=".toml,text/plain"
            onChange={(event) => {
              const [file] = event.target.files ?? []
              if (file) void file.text().then(set, setError)
            }}
          />
        </label>
      </div>
      {error !== null && <Fault error={error} />}
    </>
  )
}

function Aggregator({
  bond,
  chosen,
  choose,
}: {
  bond: bigint | null
  chosen: Schemas['NodeSummary'] | null
  choose: (node: Schemas['NodeSummary']) => void
}) {
  const lacks = (node: Schemas['NodeSummary']) => (bond ?? 0n) - BigInt(node.free)
  return (
    <Card title={words.aggregator} means={bond === null ? undefined : words.aggregatorMeans(formatTokens(bond))}>
      <ListedTable
        query={AGGREGATORS}
        caption={words.aggregator}
        keyOf={(one) => one.node}
        empty={words.noAggregator}
        columns={[
          {
            text: columns.choose,
            of: (one) => (
              <input
                type="radio"
                name="aggregator"
                aria-label={words.choose(one.node)}
                checked={one.node === chosen?.node}
                onChange={() => choose(one)}
              />
            ),
          },
          { text: say.role.aggregator, of: (one) => <Account of={one.node} as="aggregator" /> },
          { tokens: columns.free, of: (one) => one.free },
          { text: columns.bond, of: (one) => <BondBadge lacks={lacks(one)} /> },
          { number: columns.commission, of: (one) => formatBps(one.commission_bps) },
          { number: columns.rounds, of: (one) => one.rounds },
          { tokens: columns.slashed, of: (one) => one.burnt },
        ]}
      />
      {chosen && (
        <p>
          {words.chosen} <Account of={chosen.node} as="aggregator" />
        </p>
      )}
      {chosen && lacks(chosen) > 0n && (
        <p className="notice wait" role="status">
          {words.bondShort(formatTokens(lacks(chosen)))}
        </p>
      )}
    </Card>
  )
}

function BondBadge({ lacks }: { lacks: bigint }) {
  if (lacks <= 0n) return <span className="badge good">{words.bondFree}</span>
  return <span className="badge wait">{words.bondLacks(formatTokens(lacks))}</span>
}
