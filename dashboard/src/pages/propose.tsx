import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useId, useState } from 'react'
import type { Address } from 'viem'
import { answer, api, type Schemas } from '../api/client'
import { config, exampleTask } from '../api/config'
import { nodes, tasks } from '../api/queries'
import { formatBps, formatTokens, formatWhole } from '../lib/amounts'
import { faultsOf } from '../lib/faults'
import { Account, Card, Fault, Loading, Page } from '../parts/basics'
import { Choice } from '../parts/choice'
import { LoadedList } from '../parts/query'
import { Table } from '../parts/table'
import { LONGEST, useCheck, type Checking } from '../propose/check'
import { Costs } from '../propose/costs'
import example from '../propose/example.toml?raw'
import { say } from '../strings'

const Sign = lazy(() => import('../wallet/propose'))
const words = say.propose
const { columns } = say

const AGGREGATORS = nodes({ role: 'aggregator', sort: '-assets', limit: 50 })

export default function Propose() {
  const { data: place, error } = useQuery(config())
  const { data: given, error: missing } = useQuery({ ...exampleTask(), enabled: place?.hasExample === true })
  const isFallback = error !== null || missing !== null || place?.hasExample === false
  const first = isFallback ? example : given
  if (first !== undefined) return <Editor example={first} />
  return (
    <Page title={words.title} lead={words.lead}>
      <Loading isTall />
    </Page>
  )
}

/** `example`: the file that the page begins with. */
function Editor({ example }: { example: string }) {
  const [text, setText] = useState(example)
  const [chosen, choose] = useState<Schemas['NodeSummary'] | null>(null)
  const { data } = useInfiniteQuery(AGGREGATORS)
  const known = data?.pages.flatMap((page) => page.items) ?? []
  const aggregator = chosen ?? (known.length === 1 ? (known[0] ?? null) : null)
  const checking = useCheck(text)
  const { found, valid } = checking
  return (
    <Page title={words.title} lead={words.lead}>
      <File text={text} set={setText} example={example} checking={checking} />
      <Card title={words.costs}>
        {found?.task ? <Costs of={found.task} /> : <p className="soft">{words.costsWait}</p>}
      </Card>
      <Aggregator
        bond={found?.task ? BigInt(found.task.terms.aggregator_bond) : null}
        chosen={aggregator}
        choose={choose}
      />
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
              isCurrent={valid.text === text}
            />
          </Suspense>
        ) : (
          <p className="soft">{words.signWait}</p>
        )}
      </Card>
    </Page>
  )
}

interface FileProps {
  text: string
  set: (text: string) => void
  example: string
  checking: Checking
}

function File({ text, set, example, checking }: FileProps) {
  return (
    <Card title={words.file} means={words.fileMeans}>
      <Start set={set} example={example} />
      <label className="file">
        {words.text}
        <textarea
          value={text}
          spellCheck={false}
          autoComplete="off"
          autoCapitalize="off"
          wrap="off"
          rows={22}
          aria-describedby="file-state"
          onChange={(event) => set(event.target.value)}
        />
      </label>
      <div id="file-state" className="stack">
        <div className="tools checked">
          <button type="button" disabled={checking.isBusy} onClick={checking.checkNow}>
            {words.check}
          </button>
          <p role="status" className={checking.isFresh && checking.found?.holds ? 'good' : 'soft'}>
            {stateOf(text, checking)}
          </p>
        </div>
        {checking.error && <Fault error={checking.error} />}
        {checking.isFresh && checking.found?.problem && <Faults of={checking.found.problem} />}
      </div>
    </Card>
  )
}

function stateOf(text: string, { isBusy, isFresh, error, found }: Checking): string {
  if (text === '') return words.empty
  if (text.length > LONGEST) return words.tooLong(formatWhole(LONGEST))
  if (isBusy) return words.checking
  if (isFresh) return found?.holds ? words.holds : ''
  return error ? '' : words.unchecked
}

function Faults({ of }: { of: string }) {
  const faults = faultsOf(of)
  return (
    <div className="notice bad" role="alert">
      <div className="stack">
        <strong>{words.faults(faults.length)}</strong>
        <ul className="faults">
          {faults.map((fault, index) => (
            <li key={index}>{fault}</li>
          ))}
        </ul>
      </div>
    </div>
  )
}

function Start({ set, example }: Pick<FileProps, 'set' | 'example'>) {
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

async function fileOf(hash: string): Promise<string> {
  const params = { path: { hash } }
  const read: unknown = await answer(api.GET('/v1/artifacts/files/{hash}', { params, parseAs: 'text' }))
  return String(read)
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
      <LoadedList query={AGGREGATORS}>
        {(items) => {
          const still = items.find((one) => one.node === chosen?.node)
          return (
            <>
              <Table
                caption={words.aggregator}
                rows={items}
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
              {still && lacks(still) > 0n && (
                <p className="notice wait" role="status">
                  {words.bondShort(formatTokens(lacks(still)))}
                </p>
              )}
            </>
          )
        }}
      </LoadedList>
    </Card>
  )
}

function BondBadge({ lacks }: { lacks: bigint }) {
  if (lacks <= 0n) return <span className="badge good">{words.bondFree}</span>
  return <span className="badge wait">{words.bondLacks(formatTokens(lacks))}</span>
}
