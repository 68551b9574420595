import { useInfiniteQuery } from '@tanstack/react-query'
import { lazy, Suspense, useId, useState } from 'react'
import type { Address } from 'viem'
import { answer, api, type Schemas } from '../api/client'
import { nodes, tasks } from '../api/queries'
import { formatBps, formatBytes, formatEther, formatGwei, formatTokens } from '../lib/amounts'
import { formatDuration } from '../lib/times'
import { faultsOf } from '../lib/faults'
import { LONGEST, useCheck, type Checking } from '../operate/check'
import example from '../operate/example.toml?raw'
import { Listed } from '../parts/asked'
import { Account, Card, Fault, Figure, Loading, Page, Tokens } from '../parts/basics'
import { Table } from '../parts/table'
import { say } from '../strings'

const Sign = lazy(() => import('../wallet/propose'))
const words = say.propose

export default function Propose() {
  const [text, setText] = useState(example)
  const [aggregator, setAggregator] = useState<Schemas['NodeSummary'] | null>(null)
  const checking = useCheck(text)
  const { found, held } = checking
  return (
    <Page title={words.title} lead={words.lead}>
      <File text={text} set={setText} checking={checking} />
      <Card title={words.costs}>
        {found?.task ? <Costs of={found.task} /> : <p className="soft">{words.costsWait}</p>}
      </Card>
      <Aggregator
        bond={found?.task ? BigInt(found.task.terms.aggregator_bond) : null}
        chosen={aggregator}
        choose={setAggregator}
      />
      <Card title={words.sign}>
        {held && aggregator ? (
          <Suspense fallback={<Loading />}>
            <Sign
              of={{
                text: held.text,
                terms: held.task.terms,
                aggregator: aggregator.node as Address,
                isPrivate: held.task.spec.privacy !== null,
              }}
              isCurrent={held.text === text}
            />
          </Suspense>
        ) : (
          <p className="soft">{words.signWait}</p>
        )}
      </Card>
    </Page>
  )
}

function File({ text, set, checking }: { text: string; set: (text: string) => void; checking: Checking }) {
  return (
    <Card title={words.file} means={words.fileMeans}>
      <Start set={set} />
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
          <button type="button" disabled={checking.isBusy} onClick={checking.now}>
            {words.check}
          </button>
          <State text={text} of={checking} />
        </div>
        {checking.error && <Fault error={checking.error} />}
        {checking.isFresh && checking.found?.problem && <Faults of={checking.found.problem} />}
      </div>
    </Card>
  )
}

function State({ text, of }: { text: string; of: Checking }) {
  const state =
    text === ''
      ? words.empty
      : text.length > LONGEST
        ? words.tooLong(LONGEST.toLocaleString('en'))
        : of.isBusy
          ? words.checking
          : !of.isFresh
            ? of.error
              ? ''
              : words.unchecked
            : of.found?.holds
              ? words.holds
              : ''
  return (
    <p role="status" className={of.isFresh && of.found?.holds ? 'good' : 'soft'}>
      {state}
    </p>
  )
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

function Start({ set }: { set: (text: string) => void }) {
  const { data } = useInfiniteQuery(tasks({ sort: '-task', limit: 50 }))
  const [from, setFrom] = useState('')
  const [error, setError] = useState<unknown>(null)
  const id = useId()
  const named = data?.pages.flatMap((page) => page.items).filter((one) => one.name !== null) ?? []

  async function take() {
    setError(null)
    try {
      set(from === '' ? example : await fileOf(from))
    } catch (failed) {
      setError(failed)
    }
  }

  return (
    <>
      <div className="tools">
        <label>
          {words.startFrom}
          <select value={from} onChange={(event) => setFrom(event.target.value)}>
            <option value="">{words.example}</option>
            {named.map((one) => (
              <option key={one.task} value={one.spec_hash}>
                {words.taskFile(one.task, one.name ?? '')}
              </option>
            ))}
          </select>
        </label>
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

function Costs({ of }: { of: Schemas['CheckedTask'] }) {
  const { spec, terms, gas, present } = of
  const { privacy } = spec
  const pays = [
    { role: 'hospital', pay: of.hospitals, bond: terms.hospital_bond },
    { role: 'voter', pay: of.voters, bond: terms.voter_bond },
    { role: 'aggregator', pay: of.aggregator, bond: terms.aggregator_bond },
  ] as const
  const parties = ['operator', 'aggregator', 'hospital', 'seated_voter', 'standing_voter'] as const
  const count = (n: number) => n.toLocaleString('en')
  const { payColumns, gasColumns } = words
  return (
    <>
      <dl className="figures">
        <Figure name={words.pool} value={<Tokens of={terms.pool} />} beside={words.poolOf(terms.rounds)} />
        <Figure name={words.parameters} value={count(spec.parameters)} beside={spec.model} />
        <Figure
          name={words.lanes}
          value={count(spec.lanes_per_update)}
          beside={words.lanesOf(spec.lane_bits)}
        />
        <Figure
          name={words.blobs}
          value={count(of.published_blobs)}
          beside={words.blobsOf(spec.update_blobs)}
        />
        {present && (
          <Figure
            name={words.time}
            value={words.about(formatDuration(present.expected_seconds))}
            beside={words.atMost(formatDuration(present.longest_seconds))}
          />
        )}
        <Figure name={words.artifacts} value={formatBytes(of.artifact_bytes)} />
        <Figure
          name={words.epsilon}
          value={privacy ? privacy.epsilon : words.noPrivacy}
          beside={privacy ? words.delta(privacy.delta) : words.noPrivacyMeans}
        />
      </dl>
      <section className="stack" aria-label={words.concerns}>
        <h3>{words.concerns}</h3>
        {of.concerns.length === 0 ? (
          <p className="soft">{words.noConcerns}</p>
        ) : (
          <>
            <p className="soft small">{words.concernsMeans}</p>
            <ul className="concerns">
              {of.concerns.map((one) => (
                <li key={one.rule + one.reason} className="notice wait">
                  <span>
                    <strong>{one.rule}</strong>: {one.reason}
                  </span>
                </li>
              ))}
            </ul>
          </>
        )}
      </section>
      <h3>{words.pays}</h3>
      <Table
        caption={words.pays}
        rows={pays}
        name={(one) => one.role}
        empty=""
        columns={[
          { name: payColumns.role, cell: (one) => say.roles[one.role] },
          { name: payColumns.all, number: true, cell: (one) => <Tokens of={one.pay.role} /> },
          { name: payColumns.one, number: true, cell: (one) => <Tokens of={one.pay.one} /> },
          { name: payColumns.bond, number: true, cell: (one) => <Tokens of={one.bond} /> },
        ]}
      />
      <div>
        <h3>{words.gas}</h3>
        <p className="soft small">
          {words.gasMeans} {present && words.gasPrice(formatGwei(BigInt(present.gas_price)))}
        </p>
      </div>
      <Table
        caption={words.gas}
        rows={parties}
        name={(party) => party}
        empty=""
        columns={[
          { name: gasColumns.party, cell: (party) => words.party[party] },
          { name: gasColumns.once, number: true, cell: (party) => count(gas[party].once) },
          { name: gasColumns.rounds, number: true, cell: (party) => count(gas[party].rounds) },
          ...(present
            ? [
                {
                  name: gasColumns.ether,
                  number: true,
                  cell: (party: (typeof parties)[number]) =>
                    formatEther(BigInt(gas[party].once + gas[party].rounds) * BigInt(present.gas_price)),
                },
              ]
            : []),
        ]}
      />
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
  const { aggregatorColumns: columns } = words
  const lacks = (node: Schemas['NodeSummary']) => (bond ?? 0n) - BigInt(node.free)
  return (
    <Card
      title={words.aggregator}
      means={bond === null ? undefined : words.aggregatorMeans(formatTokens(bond))}
    >
      <Listed query={nodes({ role: 'aggregator', sort: '-assets', limit: 50 })}>
        {(items) => {
          const still = items.find((one) => one.node === chosen?.node)
          return (
            <>
              <Table
                caption={words.aggregator}
                rows={items}
                name={(one) => one.node}
                empty={words.noAggregator}
                columns={[
                  {
                    name: columns.choose,
                    cell: (one) => (
                      <input
                        type="radio"
                        name="aggregator"
                        aria-label={words.choose(one.node)}
                        checked={one.node === chosen?.node}
                        onChange={() => choose(one)}
                      />
                    ),
                  },
                  { name: say.role.aggregator, cell: (one) => <Account of={one.node} as="aggregator" /> },
                  { name: columns.free, number: true, cell: (one) => <Tokens of={one.free} /> },
                  {
                    name: columns.bond,
                    cell: (one) =>
                      lacks(one) > 0n ? (
                        <span className="badge wait">{words.bondLacks(formatTokens(lacks(one)))}</span>
                      ) : (
                        <span className="badge good">{words.bondFree}</span>
                      ),
                  },
                  {
                    name: say.nodes.columns.commission,
                    number: true,
                    cell: (one) => formatBps(one.commission_bps),
                  },
                  { name: columns.rounds, number: true, cell: (one) => one.rounds },
                  { name: columns.slashed, number: true, cell: (one) => <Tokens of={one.burnt} /> },
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
      </Listed>
    </Card>
  )
}
