/** The size, privacy, pay and gas of a valid task file. */
import type { Schemas } from '../api/client'
import { formatBytes, formatEther, formatGwei, formatWhole } from '../lib/amounts'
import { ROLES } from '../lib/enums'
import { formatDuration } from '../lib/times'
import { Figure, Tokens } from '../parts/basics'
import { Table } from '../parts/table'
import * as say from '../strings'
import { propose as words } from '../strings/propose'
import { Forecast } from './forecast'

const { columns } = say
const PARTIES = ['operator', 'aggregator', 'hospital', 'seated_voter', 'standing_voter'] as const

type Checked = Schemas['CheckedTask']

export function Costs({ of }: { of: Checked }) {
  return (
    <>
      <Figures of={of} />
      <Concerns of={of.concerns} />
      <Pay of={of} />
      {of.spec.sale && (
        <div>
          <h3>{say.task.sale}</h3>
          <p>{say.task.saleTerms(of.spec.sale)}</p>
        </div>
      )}
      <Gas of={of} />
      <Forecast of={{ sections: of.sections, pool: of.terms.pool }} />
    </>
  )
}

function Figures({ of }: { of: Checked }) {
  const { spec, terms, present } = of
  const { privacy } = spec
  return (
    <dl className="figures">
      <Figure name={words.pool} value={<Tokens of={terms.pool} />} beside={words.poolOf(terms.rounds)} />
      {terms.shards > 1 && <Figure name={words.shards} value={terms.shards} beside={words.shardsMean} />}
      <Figure name={words.parameters} value={formatWhole(spec.parameters)} beside={spec.model} />
      <Figure name={words.lanes} value={formatWhole(spec.lanes_per_update)} beside={words.lanesOf(spec.lane_bits)} />
      <Figure name={words.blobs} value={formatWhole(of.published_blobs)} beside={words.blobsOf(spec.update_blobs)} />
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
  )
}

function Concerns({ of }: { of: Checked['concerns'] }) {
  return (
    <section className="stack" aria-label={words.concerns}>
      <h3>{words.concerns}</h3>
      <p className="soft small">{of.length ? words.concernsMeans : words.noConcerns}</p>
      {of.length > 0 && (
        <ul className="concerns">
          {of.map((one) => (
            <li key={one.rule + one.reason} className="notice wait">
              <span>
                <strong>{one.rule}</strong>: {one.reason}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Pay({ of }: { of: Checked }) {
  const pay = { hospital: of.hospitals, voter: of.voters, aggregator: of.aggregator }
  return (
    <>
      <h3>{words.pays}</h3>
      <Table
        caption={words.pays}
        rows={ROLES}
        keyOf={(role) => role}
        columns={[
          { text: columns.role, of: (role) => say.roles[role] },
          { tokens: columns.all, of: (role) => pay[role].role },
          { tokens: columns.each, of: (role) => pay[role].one },
          { tokens: columns.bond, of: (role) => of.terms[`${role}_bond`] },
        ]}
      />
    </>
  )
}

function Gas({ of: { gas, present } }: { of: Checked }) {
  const price = BigInt(present?.gas_price ?? 0)
  const ether = {
    number: columns.ether,
    of: (party: (typeof PARTIES)[number]) => formatEther(BigInt(gas[party].once + gas[party].rounds) * price),
  }
  return (
    <>
      <div>
        <h3>{words.gas}</h3>
        <p className="soft small">
          {words.gasMeans} {present && words.gasPrice(formatGwei(price))}
        </p>
      </div>
      <Table
        caption={words.gas}
        rows={PARTIES}
        keyOf={(party) => party}
        columns={[
          { text: columns.party, of: (party) => words.party[party] },
          { number: columns.once, of: (party) => formatWhole(gas[party].once) },
          { number: words.allRounds, of: (party) => formatWhole(gas[party].rounds) },
          ...(present ? [ether] : []),
        ]}
      />
    </>
  )
}
