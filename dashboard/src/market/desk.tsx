/** A server's desk: the buyer's account there, a deposit, rows to predict, and answers with their receipts. */
import { useState, type SyntheticEvent } from 'react'
import type { Address } from 'viem'
import { formatExactly } from '../lib/amounts'
import { fieldOf } from '../lib/fields'
import { Facts, Fault, Loading, Notice, Tokens } from '../parts/basics'
import { Command } from '../parts/command'
import { Table } from '../parts/table'
import { Cell, FromTable, Result, type Cells } from '../predict/form'
import { readCell, type Column } from '../predict/rows'
import * as say from '../strings'
import { useNetwork, useRefusal } from '../wallet/provider'
import { useAccount, usePurchase, type Account, type Place, type Purchase } from './account'
import { Checks } from './checks'
import { Deposit } from './deposit'

const words = say.market

export function Desk({ account, ...place }: { account: Address } & Place) {
  const { data: found, error, refetch } = useAccount(account, place)
  if (!found) return error ? <Fault error={error} retry={() => void refetch()} /> : <Loading />
  const again = async () => {
    await refetch()
  }
  return (
    <div className="stack">
      {error && <Fault error={error} retry={() => void refetch()} />}
      <Facts
        of={[
          [words.price, <Tokens key="price" of={found.of.price} isExact />],
          [words.deposited, <Tokens key="deposited" of={found.deposited} isExact />],
          [words.owed, <Tokens key="owed" of={found.sold} isExact />],
          [words.left, <Tokens key="left" of={found.left} isExact />],
        ]}
      />
      {found.isClosing && <Notice kind="wait">{words.closing}</Notice>}
      <Deposit buyer={account} place={place} least={found.of.leastDeposit} again={again} />
      {found.of.columns ? (
        <Rows buyer={account} place={place} account={found} columns={found.of.columns} again={again} />
      ) : (
        <>
          <p className="soft">{words.noTable}</p>
          <Command of={`consilium buy ${place.url} data --output predictions.csv --receipts receipts`} />
        </>
      )}
    </div>
  )
}

interface Entering {
  buyer: Address
  place: Place
  account: Account
  columns: readonly Column[]
  again: () => Promise<void>
}

type State = { state: 'idle' | 'signing' | 'asking' } | { state: 'failed'; why: string }

function Rows({ buyer, place, account, columns, again }: Entering) {
  const network = useNetwork()
  const refusal = useRefusal()
  const { purchase, isSent } = usePurchase(buyer, place)
  const [cells, setCells] = useState<Cells>({})
  const [table, setTable] = useState<readonly Cells[]>([])
  const [state, setState] = useState<State>({ state: 'idle' })
  const [bought, setBought] = useState<Purchase>()
  const read = columns.map((column) => ({ column, text: cells[column.column] ?? '' }))
  const faults = read.map(({ column, text }) => readCell(column, text).fault)
  const isBusy = state.state === 'signing' || state.state === 'asking'

  async function go(rows: readonly Cells[]) {
    setBought(undefined)
    setState({ state: 'signing' })
    try {
      setBought(await purchase(requestOf(rows), account, priceOf(rows), () => setState({ state: 'asking' })))
      await again()
      setState({ state: 'idle' })
    } catch (error) {
      await again()
      setState({ state: 'failed', why: refusal(error) })
    }
  }

  const requestOf = (rows: readonly Cells[]) => JSON.stringify({ rows: rows.map((row) => rowOf(row, columns)) })
  const priceOf = (rows: readonly Cells[]) => account.of.price * BigInt(rows.length)
  const canPay = (rows: readonly Cells[]) =>
    account.left >= priceOf(rows) || isSent(requestOf(rows), account, priceOf(rows))
  const areValid = table.every((row) => columns.every((one) => readCell(one, row[one.column] ?? '').fault === ''))
  return (
    <form
      className="stack"
      aria-label={words.row}
      onSubmit={(event: SyntheticEvent) => {
        event.preventDefault()
        void go([cells])
      }}
    >
      <h3>{words.row}</h3>
      <FromTable columns={columns} fill={setCells} take={setTable} />
      <div className="inputs">
        {read.map(({ column, text }, at) => (
          <Cell
            key={column.column}
            of={column}
            text={text}
            fault={faults[at] ?? ''}
            change={(to) => setCells({ ...cells, [column.column]: to })}
          />
        ))}
      </div>
      <div className="tools">
        <button
          type="submit"
          className="main"
          disabled={isBusy || !canPay([cells]) || faults.some((one) => one !== '')}
        >
          {words.one(formatExactly(priceOf([cells])))}
        </button>
        {table.length > 1 && (
          <button
            type="button"
            disabled={isBusy || !areValid || table.length > account.of.mostRows || !canPay(table)}
            onClick={() => void go(table)}
          >
            {words.all(table.length, formatExactly(priceOf(table)))}
          </button>
        )}
      </div>
      {table.length > account.of.mostRows && <p className="bad">{words.tooMany(account.of.mostRows)}</p>}
      {!canPay([cells]) && <p className="soft">{words.needsDeposit}</p>}
      <div role={state.state === 'failed' ? 'alert' : 'status'}>
        {state.state === 'failed' ? (
          <div className="notice bad">{state.why}</div>
        ) : (
          isBusy && <div className="notice wait">{words[state.state === 'signing' ? 'signing' : 'asking']}</div>
        )}
      </div>
      {bought && (
        <section className="stack" aria-label={words.result}>
          <h3>{words.result}</h3>
          <Predictions of={bought} />
          <h3>{words.receipt}</h3>
          <p className="soft small">{words.receiptMeans}</p>
          <Checks key={bought.receipt.signature} network={network} of={bought} more={[bought.payment]} />
        </section>
      )}
    </form>
  )
}

/** A row of JSON: numbers, names of values, and null for what is missing. */
function rowOf(cells: Cells, columns: readonly Column[]): Record<string, unknown> {
  const values = columns.map((column) => {
    const text = cells[column.column] ?? ''
    const { value } = readCell(column, text)
    return [column.column, Number.isNaN(value) ? null : value] as const
  })
  return Object.fromEntries(values)
}

function Predictions({ of }: { of: Purchase }) {
  const found = answersOf(of.response)
  const [only] = found
  if (found.length === 1 && only)
    return (
      <Result
        of={{ answers: only.map(([name, , unit]) => ({ words: name, unit })), exclusive: isExclusive(of.response) }}
        values={only.map(([, value]) => value)}
      />
    )
  return (
    <Table
      caption={words.result}
      rows={found.map((values, at) => ({ at, values }))}
      keyOf={({ at }) => at}
      columns={[
        { number: words.number, of: ({ at }) => at + 1 },
        { text: words.answer, of: ({ values }) => values.map(shownValue).join(', ') },
      ]}
    />
  )
}

/** Name, value, and null for a chance or a text for an amount. */
type Value = readonly [name: string, value: number, unit: string | null]

const shownValue = ([name, value, unit]: Value) =>
  `${name} ${unit === null ? say.predict.percent(value) : say.predict.amount(value, unit)}`

function predictionsIn(response: string): unknown[] {
  const predictions = fieldOf(JSON.parse(response), 'predictions')
  return Array.isArray(predictions) ? predictions : []
}

const isExclusive = (response: string) => predictionsIn(response).some((one) => fieldOf(one, 'class') !== undefined)

function answersOf(response: string): Value[][] {
  return predictionsIn(response).map((one) => {
    const chances = fieldOf(one, 'probabilities')
    const values = Object.entries(chances ?? fieldOf(one, 'answers') ?? {})
    const unit = chances === undefined ? '' : null
    return values.filter(([, value]) => typeof value === 'number').map(([name, value]) => [name, Number(value), unit])
  })
}
