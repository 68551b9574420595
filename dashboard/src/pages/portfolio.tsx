import { lazy } from 'react'
import { Page } from '../parts/basics'
import { WithWalletCode } from '../parts/wallets'
import { say } from '../strings'
import { LookUp } from './account'

const Own = lazy(() => import('../wallet/portfolio'))

export default function Portfolio() {
  return (
    <Page title={say.portfolio.title} lead={say.portfolio.lead}>
      <LookUp />
      <WithWalletCode>
        <Own />
      </WithWalletCode>
    </Page>
  )
}
