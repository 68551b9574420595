/** Profiles and verified names of accounts. Those that are asked for at about the same time come in one request, and are kept. */
import { queryOptions } from '@tanstack/react-query'
import { answer, api, type Schemas } from './client'

type Answer = Schemas['Profiles']

/** `domain`, `ens`: names that another side verifies. */
export interface Known {
  profile: Schemas['Profile'] | null
  domain: Schemas['VerifiedName'] | null
  ens: Schemas['VerifiedName'] | null
}

const MOST = 100 // of a request
const GATHER = 20 // milliseconds
const KEPT = 600_000 // milliseconds

interface Batch {
  accounts: Set<string>
  found: Promise<Answer>
}
let open: Batch | undefined

function begun(): Batch {
  const accounts = new Set<string>()
  const found = new Promise((resolve) => setTimeout(resolve, GATHER)).then(async () => {
    if (open === batch) open = undefined
    return answer(api.GET('/v1/profiles', { params: { query: { account: [...accounts] } } }))
  })
  const batch = { accounts, found }
  return batch
}

async function knownOf(account: string): Promise<Known | null> {
  if (!open || open.accounts.size === MOST) open = begun()
  open.accounts.add(account)
  const { items, names } = await open.found
  const isOwn = (one: { account: string }) => one.account.toLowerCase() === account
  const name = (kind: string) => names.find((one) => isOwn(one) && one.kind === kind) ?? null
  const known = { profile: items.find(isOwn) ?? null, domain: name('domain'), ens: name('ens') }
  return Object.values(known).some(Boolean) ? known : null
}

/** Null without a profile and a verified name. */
export const profile = (account: string) =>
  queryOptions({
    queryKey: ['profile', account.toLowerCase()],
    queryFn: () => knownOf(account.toLowerCase()),
    staleTime: KEPT,
    retry: false,
    refetchInterval: false,
  })
