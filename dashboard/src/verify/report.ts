/** The report of an audit, with the field names of `consilium verify --json`. Pure. */
import { sha256, stringToBytes, type Address, type Hex } from 'viem'
import { formatUtc } from '../lib/times'
import { audit as words } from '../strings/audit'
import { verdictOf, type Step } from './core'
import type { Head } from './chain'
import type { Checked } from './session'

export const SCHEMA = 'consilium.audit/1'

/** As in `report.py`. */
type Result = 'holds' | 'FAILS' | 'not checked'
export type RoundVerdict = 'holds' | 'fails' | 'could not check'

interface Check {
  name: string
  result: Result
  detail: string
}

export interface RoundReport {
  subject: {
    task: number
    round: number
    rounds: number
    outcome: string
    chain_id: number
    contract: Address
    node: string
    survivors: number
  }
  verdict: RoundVerdict
  checks: Check[]
  derived: []
  holds: boolean
  /** The contract's versioned hash of each blob, and a digest of all that was read from the chain; null if unread. */
  inputs: { block: number; record_sha256: string; blobs: Hex[] } | null
  ended_at: string
}

export interface Report {
  schema: typeof SCHEMA
  made_by: string
  task: number
  chain: { chain_id: number; contract: Address; node: string; block: number; hash: Hex }
  started_at: string
  ended_at: string
  /** Ended rounds that the audit did not come to. */
  left: number[]
  rounds: RoundReport[]
  not_proven: readonly string[]
}

/** The file that is downloaded. */
export interface SignedReport {
  report: Report
  sha256: string
  signature: { account: Address; message: string; signature: Hex } | null
}

export interface Audited {
  task: number
  head: Head
  chainId: number
  contract: Address
  node: string
}

/** The check of the command line that a step belongs to. */
function nameOf({ key }: Step): string {
  if (key === 'decoys' || key === 'negatedDelta') return 'decoys'
  return key.startsWith('blob-') ? 'blobs' : 'sums'
}

const ORDER: readonly Step['state'][] = ['fails', 'running', 'waits', 'skipped', 'holds']

function checkOf(name: string, steps: readonly Step[]): Check {
  const worst = ORDER.find((state) => steps.some((one) => one.state === state))
  const told = steps.filter((one) => one.state === worst)
  const detail = told.map((one) => `${one.title}: ${one.lines.join(' ')}`).join('\n')
  return { name, result: worst === 'fails' ? 'FAILS' : worst === 'holds' ? 'holds' : 'not checked', detail }
}

export function roundReport(of: Audited, round: number, { steps, record }: Checked, at: number): RoundReport {
  const names = ['decoys', 'sums', 'blobs'].filter((name) => steps.some((one) => nameOf(one) === name))
  const checks = names.map((name) =>
    checkOf(
      name,
      steps.filter((one) => nameOf(one) === name),
    ),
  )
  const verdict = verdictOf(steps)
  return {
    subject: {
      task: of.task,
      round,
      rounds: of.head.rounds,
      outcome: record?.outcome ?? 'unknown',
      chain_id: of.chainId,
      contract: of.contract,
      node: of.node,
      survivors: record?.cohorts.reduce((sum, cohort) => sum + cohort.survivors.length, 0) ?? 0,
    },
    verdict: verdict === 'holds' || verdict === 'fails' ? verdict : 'could not check',
    checks,
    derived: [],
    holds: checks.every((one) => one.result !== 'FAILS'),
    inputs: record && {
      block: Number(record.block),
      record_sha256: digest({
        ...record,
        block: null,
        pointHashes: [...record.pointHashes],
        points: [...record.points],
      }),
      blobs: record.cohorts.flatMap((cohort) => cohort.expected).filter((hash) => hash !== null),
    },
    ended_at: formatUtc(at),
  }
}

export function taskReport(
  of: Audited,
  rounds: RoundReport[],
  times: { started: number; ended: number },
  by: string,
): Report {
  const done = new Set(rounds.map((one) => one.subject.round))
  return {
    schema: SCHEMA,
    made_by: by,
    task: of.task,
    chain: {
      chain_id: of.chainId,
      contract: of.contract,
      node: of.node,
      block: of.head.block,
      hash: of.head.hash,
    },
    started_at: formatUtc(times.started),
    ended_at: formatUtc(times.ended),
    left: of.head.ended.filter((round) => !done.has(round)),
    rounds,
    not_proven: words.notProven,
  }
}

/** JSON with sorted keys and without spaces, as `jq -cS` writes it. Integers beyond 2^53 are text. */
export function canonical(value: unknown): string {
  if (typeof value === 'bigint') return JSON.stringify(String(value))
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return `{${entries.map(([key, of]) => `${JSON.stringify(key)}:${canonical(of)}`).join(',')}}`
}

/** Hexadecimal SHA-256 of the canonical JSON. */
export function digest(value: unknown): string {
  return sha256(stringToBytes(canonical(value))).slice(2)
}

/** The text that a wallet signs (EIP-191). */
export function messageFor(hash: string): string {
  return `Consilium audit report\nSHA-256: ${hash}`
}
