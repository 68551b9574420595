/** Sign-In with Ethereum at the API. The token stays in this page's memory. */
import { useState } from 'react'
import type { Address } from 'viem'
import { useConfig } from 'wagmi'
import { signMessage } from 'wagmi/actions'
import { answer, api, ApiProblem, type Schemas } from '../api/client'
import { signInMessage } from '../lib/signin'

/** `ask` signs in if it must, and calls with the session's header. `statement`: as the wallet shows it. Throws the wallet's
 * error, ApiProblem, ApiUnreachable.
 */
export function useSession(account: Address, statement: string) {
  const config = useConfig()
  const [session, setSession] = useState<Schemas['SignedIn'] | null>(null)

  async function signIn(): Promise<Schemas['SignedIn']> {
    if (session?.account === account && session.expires_at > Date.now() / 1000 + 10) return session
    const { domain, uri, chain_id: chainId, nonce } = await answer(api.GET('/v1/session/nonce'))
    const issuedAt = new Date().toISOString()
    const message = signInMessage({ domain, uri, chainId, nonce, account, statement, issuedAt })
    const signature = await signMessage(config, { account, message })
    const found = await answer(api.POST('/v1/session', { body: { message, signature } }))
    setSession(found)
    return found
  }

  async function ask<T>(call: (headers: { Authorization: string }) => Promise<T>): Promise<T> {
    const { token } = await signIn()
    try {
      return await call({ Authorization: `Bearer ${token}` })
    } catch (error) {
      if (error instanceof ApiProblem && error.kind === 'sign-in-required') setSession(null)
      throw error
    }
  }
  return { ask }
}
