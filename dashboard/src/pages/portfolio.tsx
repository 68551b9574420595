import { lazy, Suspense } from 'react'
import { Loading, Page } from '../parts/basics'
import { say } from '../strings'
import { LookUp } from './account'

const Own = lazy(() => import('../wallet/portfolio'))

export default function Portfolio() {
  return (
    <Page title={say.portfolio.title} lead={say.portfolio.lead}>
      <LookUp />
      <Suspense fallback={<Loading isTall />}>
        <Own />
      </Suspense>
    </Page>
  )
}
