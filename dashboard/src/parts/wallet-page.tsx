/** The frame of a page that needs a wallet. It has no wallet code, and is there before it. */
import { useQuery } from '@tanstack/react-query'
import { Suspense, type ReactNode } from 'react'
import { config } from '../api/config'
import * as say from '../strings'
import { Later, Loading, Page } from './basics'
import { LookUp } from './lookup'
import { NetworkCard } from './network'
import { ConnectCard, NoWallet, useWallets } from './wallets'

const PAGES = {
  portfolio: { words: say.portfolio, before: <LookUp /> },
  desk: { words: say.desk, before: null },
  setup: { words: say.setup, before: <NetworkCard /> },
}

/** A page whose children need a wallet. Their code is larger than all other, and is loaded only if there is a wallet. */
export default function WalletPage({ of, children }: { of: keyof typeof PAGES; children: ReactNode }) {
  const hasWallet = useWallets().length > 0
  const page = PAGES[of]
  const { isLoading } = useQuery({ ...config(), enabled: of === 'setup' })
  return (
    <Page title={page.words.title} lead={page.words.lead}>
      {page.before}
      <Later after={!isLoading}>
        {hasWallet ? (
          <Suspense fallback={<Loading isTall />}>{children}</Suspense>
        ) : (
          <ConnectCard>
            <NoWallet />
          </ConnectCard>
        )}
      </Later>
    </Page>
  )
}
