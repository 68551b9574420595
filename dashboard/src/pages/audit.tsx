/** The page that verifies a whole task. The code that verifies comes once the page is there. */
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { useParams } from 'react-router'
import { task as taskOf } from '../api/queries'
import { Crumbs, Loading, Page } from '../parts/basics'
import { audit as words } from '../strings/audit'
import { WithNode } from '../verify/node'
import Missing from './missing'

const Audit = lazy(() => import('../verify/audit'))

export default function AuditPage() {
  const task = Number(useParams().task)
  const described = useQuery({ ...taskOf(task), enabled: Number.isSafeInteger(task) })
  if (!Number.isSafeInteger(task) || task < 1) return <Missing />
  return (
    <Page title={words.title(task)} lead={words.lead} crumbs={<Crumbs task={task} />}>
      {described.isPending ? (
        <Loading />
      ) : (
        <WithNode>
          {(config, node) => (
            <Suspense fallback={<Loading />}>
              <Audit
                key={`${task} ${node.name}`}
                {...{ config, node, task, coordinates: described.data?.spec?.coordinates ?? null }}
              />
            </Suspense>
          )}
        </WithNode>
      )}
    </Page>
  )
}
