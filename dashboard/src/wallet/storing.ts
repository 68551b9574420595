/** Puts a task file where its hash finds it. The server wants to know who asks: Sign-In with Ethereum, whose token stays
 * in this page's memory.
 */
import { useState } from 'react'
import { keccak256, stringToBytes, type Address, type Hash } from 'viem'
import { useConfig } from 'wagmi'
import { signMessage } from 'wagmi/actions'
import { answer, api, ApiProblem } from '../api/client'
import { signInMessage } from '../lib/signin'
import { say } from '../strings'
import { refusal } from './errors'

export type Storing =
  | { state: 'idle' | 'signing' | 'storing' }
  | { state: 'stored'; hash: Hash }
  | { state: 'failed'; why: string }

interface Session {
  token: string
  /** Seconds since the epoch. */
  expiresAt: number
}

/** By the bytes that are stored, whatever a server says. */
export function fileHash(text: string): Hash {
  return keccak256(stringToBytes(text))
}

/** Only for the account that it is called with: give components another key for another account. */
export function useStoring(account: Address): { storing: Storing; store: (text: string) => Promise<void> } {
  const config = useConfig()
  const [storing, setStoring] = useState<Storing>({ state: 'idle' })
  const [session, setSession] = useState<Session | null>(null)

  async function signedIn(): Promise<Session> {
    if (session && session.expiresAt > Date.now() / 1000 + 10) return session
    setStoring({ state: 'signing' })
    const { domain, uri, chain_id, nonce } = await answer(api.GET('/v1/session/nonce'))
    const issuedAt = new Date().toISOString()
    const { statement } = say.propose
    const message = signInMessage({ domain, uri, chainId: chain_id, nonce, account, statement, issuedAt })
    const signature = await signMessage(config, { account, message })
    const { token, expires_at } = await answer(api.POST('/v1/session', { body: { message, signature } }))
    const found = { token, expiresAt: expires_at }
    setSession(found)
    return found
  }

  async function store(text: string) {
    try {
      const { token } = await signedIn()
      setStoring({ state: 'storing' })
      const headers = { Authorization: `Bearer ${token}` }
      const { hash } = await answer(api.PUT('/v1/artifacts/files', { body: { text }, headers }))
      const wanted = fileHash(text)
      setStoring(
        hash === wanted ? { state: 'stored', hash: wanted } : { state: 'failed', why: say.propose.otherHash },
      )
    } catch (error) {
      if (error instanceof ApiProblem && error.kind === 'sign-in-required') setSession(null)
      setStoring({ state: 'failed', why: refusal(error) })
    }
  }
  return { storing, store }
}
