import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import {
  createHashRouter,
  isRouteErrorResponse,
  NavLink,
  Outlet,
  ScrollRestoration,
  useRouteError,
} from 'react-router'
import { useLive } from './api/live'
import { network } from './api/queries'
import Missing from './pages/missing'
import Overview from './pages/overview'
import { Loading, Page } from './parts/basics'
import { say } from './strings'

const Tasks = lazy(() => import('./pages/tasks'))
const Task = lazy(() => import('./pages/task'))
const Round = lazy(() => import('./pages/round'))
const Nodes = lazy(() => import('./pages/nodes'))
const Node = lazy(() => import('./pages/node'))
const Portfolio = lazy(() => import('./pages/portfolio'))
const Desk = lazy(() => import('./pages/desk'))
const Account = lazy(() => import('./pages/account'))
const Propose = lazy(() => import('./pages/propose'))

/** Paths stand behind #, so that the files can lie in any folder of any server. */
export const router = createHashRouter([
  {
    element: <Frame />,
    errorElement: <Crashed />,
    children: [
      { index: true, element: <Overview /> },
      { path: 'tasks', element: <Tasks /> },
      { path: 'tasks/:task', element: <Task /> },
      { path: 'tasks/:task/rounds/:round', element: <Round /> },
      { path: 'nodes', element: <Nodes /> },
      { path: 'nodes/:node/:role', element: <Node /> },
      { path: 'portfolio', element: <Portfolio /> },
      { path: 'desk', element: <Desk /> },
      { path: 'accounts/:account', element: <Account /> },
      { path: 'propose', element: <Propose /> },
      { path: '*', element: <Missing /> },
    ],
  },
])

const LINKS = [
  ['/', say.nav.overview],
  ['/tasks', say.nav.tasks],
  ['/nodes', say.nav.nodes],
  ['/portfolio', say.nav.portfolio],
  ['/desk', say.nav.desk],
  ['/propose', say.nav.operate],
] as const

function Frame() {
  const live = useLive()
  const { data } = useQuery({ ...network(), refetchInterval: 15_000 })
  return (
    <>
      <a className="skip" href="#content" onClick={focusContent}>
        {say.skip}
      </a>
      <header className="bar">
        <div>
          <NavLink className="brand" to="/">
            <img src="./icon.svg" alt="" width="29" height="29" />
            {say.name}
          </NavLink>
          <nav aria-label={say.nav.label}>
            <ul>
              {LINKS.map(([path, name]) => (
                <li key={path}>
                  <NavLink to={path} end={path === '/'}>
                    {name}
                  </NavLink>
                </li>
              ))}
            </ul>
          </nav>
          <div className="right">
            <span className="live" data-state={live} role="status">
              {say.live[live]}
            </span>
            <Theme />
          </div>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </main>
      <footer className="foot">
        <div>{data && say.footer(data.index.block, data.index.behind)}</div>
      </footer>
      <ScrollRestoration />
    </>
  )
}

/** By hand: a link to an id would be taken for a page's path. */
function focusContent(event: { preventDefault: () => void }) {
  event.preventDefault()
  document.getElementById('content')?.focus()
}

function Theme() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? 'system')
  const choose = (chosen: string) => {
    setTheme(chosen)
    if (chosen === 'system') {
      delete document.documentElement.dataset.theme
      localStorage.removeItem('theme')
    } else {
      document.documentElement.dataset.theme = chosen
      localStorage.setItem('theme', chosen)
    }
  }
  return (
    <select aria-label={say.theme.label} value={theme} onChange={(event) => choose(event.target.value)}>
      <option value="system">{say.theme.system}</option>
      <option value="light">{say.theme.light}</option>
      <option value="dark">{say.theme.dark}</option>
    </select>
  )
}

function Crashed() {
  const error = useRouteError()
  if (isRouteErrorResponse(error) && error.status === 404) return <Missing />
  return (
    <main>
      <Page title={say.name} lead={say.crashed}>
        <pre className="wrap">{error instanceof Error ? error.message : String(error)}</pre>
      </Page>
    </main>
  )
}
