/** Profiles of accounts. Those that are asked for at about the same time come in one request, and are kept. */
import { queryOptions } from '@tanstack/react-query'
import { answer, api, type Schemas } from './client'

type Profile = Schemas['Profile']

const MOST = 100 // of a request
const GATHER = 20 // milliseconds
const KEPT = 600_000 // milliseconds

interface Batch {
  accounts: Set<string>
  found: Promise<readonly Profile[]>
}
let open: Batch | undefined

function begun(): Batch {
  const accounts = new Set<string>()
  const found = new Promise((resolve) => setTimeout(resolve, GATHER)).then(async () => {
    if (open === batch) open = undefined
    return (await answer(api.GET('/v1/profiles', { params: { query: { account: [...accounts] } } }))).items
  })
  const batch = { accounts, found }
  return batch
}

async function profileOf(account: string): Promise<Profile | null> {
  if (!open || open.accounts.size === MOST) open = begun()
  open.accounts.add(account)
  const found = await open.found
  return found.find((one) => one.account.toLowerCase() === account) ?? null
}

/** Null without a profile. */
export const profile = (account: string) =>
  queryOptions({
    queryKey: ['profile', account.toLowerCase()],
    queryFn: () => profileOf(account.toLowerCase()),
    staleTime: KEPT,
    retry: false,
    refetchInterval: false,
  })
