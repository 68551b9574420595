/** The draft of a proposal, kept in this browser tab so that a reload or another page does not lose it. */
import type { Address, Hash } from 'viem'
import { fieldOf } from '../lib/fields'
import { treeOf } from '../lib/taskform'
import { LONGEST, type Draft } from './check'

const KEY = 'proposal'

/** `stored`: hash of a file that this tab has stored at the server. */
export interface Kept {
  draft: Draft
  aggregator: Address | null
  stored: Hash | null
}

export function kept(): Kept | null {
  try {
    const read: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? 'null')
    const text = fieldOf(fieldOf(read, 'draft'), 'text')
    const document = fieldOf(fieldOf(read, 'draft'), 'document')
    if (typeof text !== 'string' && document === undefined) return null
    const draft = typeof text === 'string' ? { text } : { document: treeOf(document) }
    return { draft, aggregator: hexOf(read, 'aggregator'), stored: hexOf(read, 'stored') }
  } catch {
    return null // the browser keeps nothing for this site, or another program wrote it: the page begins anew
  }
}

export function keep(changes: Partial<Kept> | null): void {
  try {
    const next = changes && JSON.stringify({ ...kept(), ...changes })
    if (next === null || next.length > 2 * LONGEST) sessionStorage.removeItem(KEY)
    else sessionStorage.setItem(KEY, next)
  } catch {
    return // as above: the page works without it
  }
}

function hexOf(value: unknown, name: string): `0x${string}` | null {
  const found = fieldOf(value, name)
  return typeof found === 'string' && /^0x[0-9a-fA-F]+$/.test(found) ? (found as `0x${string}`) : null
}
