import { lazy } from 'react'
import { Page } from '../parts/basics'
import { WithWalletCode } from '../parts/wallets'
import { say } from '../strings'

const Own = lazy(() => import('../wallet/desk'))

export default function Desk() {
  return (
    <Page title={say.desk.title} lead={say.desk.lead}>
      <WithWalletCode>
        <Own />
      </WithWalletCode>
    </Page>
  )
}
