/** The form of an account's public profile: its wallet signs it, and the API stores it. */
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Address } from 'viem'
import { useConfig } from 'wagmi'
import { signTypedData } from 'wagmi/actions'
import { answer, api, ApiProblem } from '../api/client'
import { profile } from '../api/profiles'
import { Card, Coded, Loading, Notice } from '../parts/basics'
import { Shown } from '../parts/dialog'
import * as say from '../strings'
import { useIsContract, useNetwork, useRefusal } from './provider'

const words = say.profile
const FIELDS = ['name', 'institution', 'country', 'site', 'contact'] as const
type Texts = Record<(typeof FIELDS)[number], string>
/** As the server and the command line sign it: `consilium_chain/profiles.py`. */
const STRUCT = [
  { name: 'account', type: 'address' },
  { name: 'updatedAt', type: 'uint64' },
  ...FIELDS.map((name) => ({ name, type: 'string' })),
]

/** Signs the texts, and sends them. Throws the wallet's error, ApiProblem, ApiUnreachable. */
function usePublish(account: Address) {
  const network = useNetwork()
  const config = useConfig()
  const client = useQueryClient()
  return async (texts: Texts) => {
    const now = Math.floor(Date.now() / 1000)
    const signature = await signTypedData(config, {
      account,
      domain: {
        name: 'ConsiliumProfile',
        version: '1',
        chainId: network.chainId,
        verifyingContract: network.staking,
      },
      types: { NodeProfile: STRUCT },
      primaryType: 'NodeProfile',
      message: { account, updatedAt: BigInt(now), ...texts },
    })
    const body = { ...texts, updated_at: now, signature: signature.toLowerCase() }
    await answer(api.PUT('/v1/profiles/{account}', { params: { path: { account } }, body }))
    await client.invalidateQueries({ queryKey: profile(account).queryKey })
  }
}

type State = { state: 'idle' | 'signing' | 'done' } | { state: 'failed'; why: string }

export default function ProfileForm({ account }: { account: Address }) {
  const {
    data: known,
    isPending,
    isPlaceholderData: isOther,
  } = useQuery({ ...profile(account), placeholderData: keepPreviousData })
  const publish = usePublish(account)
  const isContract = useIsContract(account)
  const refusal = useRefusal()
  const [sending, setSending] = useState<State>({ state: 'idle' })
  const site = known?.profile?.site
  const isSigning = sending.state === 'signing'
  if (isPending) return <Loading />
  if (isContract) return <Card title={words.title}>{words.contract}</Card>

  const send = async (form: FormData) => {
    const text = (field: string) => {
      const typed = form.get(field)
      return typeof typed === 'string' ? typed.trim().normalize('NFC') : ''
    }
    setSending({ state: 'signing' })
    try {
      await publish({
        name: text('name'),
        institution: text('institution'),
        country: text('country').toUpperCase(),
        site: text('site'),
        contact: text('contact'),
      })
      setSending({ state: 'done' })
    } catch (error) {
      setSending({ state: 'failed', why: error instanceof ApiProblem ? error.message : refusal(error) })
    }
  }
  return (
    <Card title={words.title} means={words.lead}>
      {isOther && <Loading />}
      <Shown when={!isOther}>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            if (!isSigning) void send(new FormData(event.currentTarget))
          }}
        >
          <div className="inputs">
            {FIELDS.map((field) => (
              <label key={field}>
                {words[field]}
                <input
                  name={field}
                  defaultValue={known?.profile?.[field]}
                  placeholder={words.hints[field]}
                  required={field === 'name'}
                  maxLength={field === 'country' ? 2 : 200}
                  autoComplete="off"
                />
              </label>
            ))}
          </div>
          <div>
            <button type="submit" disabled={isSigning || isContract === undefined}>
              {words.sign}
            </button>
          </div>
          <div role="status" data-news>
            {isSigning && <Notice kind="wait">{words.signing}</Notice>}
            {sending.state === 'done' && <Notice kind="good">{words.done}</Notice>}
          </div>
          {site && !known.domain && (
            <p className="soft small">
              <Coded text={words.verify(account, `${new URL(site).origin}/.well-known/consilium.txt`)} />
            </p>
          )}
          {sending.state === 'failed' && <Notice kind="bad">{sending.why}</Notice>}
        </form>
      </Shown>
    </Card>
  )
}
