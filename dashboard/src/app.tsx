import { useQuery } from '@tanstack/react-query'
import { Component, lazy, Suspense, useEffect, useState, type ReactNode } from 'react'
import { HashRouter, NavigationType, NavLink, Outlet, useLocation, useNavigationType, useRoutes } from 'react-router'
import { useLive } from './api/live'
import { network } from './api/queries'
import { messageOf } from './lib/errors'
import { LANGUAGE, LANGUAGES, speak } from './lib/language'
import Missing from './pages/missing'
import Overview from './pages/overview'
import { Loading, Page, TokenSymbol } from './parts/basics'
import { Choice } from './parts/choice'
import * as say from './strings'

const WalletPage = lazy(() => import('./parts/wallet-page'))
const Tasks = lazy(() => import('./pages/tasks'))
const CompareTasks = lazy(() => import('./pages/compare-tasks'))
const Task = lazy(() => import('./pages/task'))
const Round = lazy(() => import('./pages/round'))
const Audit = lazy(() => import('./pages/audit'))
const Market = lazy(() => import('./pages/market'))
const Model = lazy(() => import('./pages/model'))
const Ensemble = lazy(() => import('./pages/ensemble'))
const Nodes = lazy(() => import('./pages/nodes'))
const CompareNodes = lazy(() => import('./pages/compare-nodes'))
const Node = lazy(() => import('./pages/node'))
const Portfolio = lazy(() => import('./wallet/portfolio'))
const Desk = lazy(() => import('./wallet/desk'))
const SetUp = lazy(() => import('./wallet/setup'))
const Account = lazy(() => import('./pages/account'))
const Told = lazy(() => import('./pages/told'))
const Search = lazy(() => import('./pages/search'))
const Propose = lazy(() => import('./pages/propose'))

/** Paths stand after a #, so that any folder of any server can hold the files. */
export function App() {
  return (
    <HashRouter>
      <Pages />
    </HashRouter>
  )
}

const PAGES = [
  {
    element: <Frame />,
    children: [
      { index: true, element: <Overview /> },
      { path: 'tasks', element: <Tasks /> },
      { path: 'tasks/compare', element: <CompareTasks /> },
      { path: 'tasks/:task', element: <Task /> },
      { path: 'tasks/:task/rounds/:round', element: <Round /> },
      { path: 'tasks/:task/audit', element: <Audit /> },
      { path: 'market', element: <Market /> },
      { path: 'models/:task', element: <Model /> },
      { path: 'ensembles/:number', element: <Ensemble /> },
      { path: 'nodes', element: <Nodes /> },
      { path: 'nodes/compare', element: <CompareNodes /> },
      { path: 'nodes/:node/:role', element: <Node /> },
      {
        path: 'portfolio',
        element: (
          <WalletPage of="portfolio">
            <Portfolio />
          </WalletPage>
        ),
      },
      {
        path: 'desk',
        element: (
          <WalletPage of="desk">
            <Desk />
          </WalletPage>
        ),
      },
      {
        path: 'wallet',
        element: (
          <WalletPage of="setup">
            <SetUp />
          </WalletPage>
        ),
      },
      { path: 'accounts/:account', element: <Account /> },
      { path: 'propose', element: <Propose /> },
      { path: 'search', element: <Search /> },
      { path: 'told', element: <Told /> },
      { path: '*', element: <Missing /> },
    ],
  },
]

function Pages() {
  const { pathname, key } = useLocation()
  const how = useNavigationType()
  useEffect(() => {
    if (how === NavigationType.Push) window.scrollTo(0, 0) // the browser itself goes back to where one was
  }, [how, pathname])
  return <Guard at={key}>{useRoutes(PAGES)}</Guard>
}

/** Shows a fault of a page instead of it, until another one is opened. */
class Guard extends Component<{ at: string; children: ReactNode }, { fault: { error: unknown } | null }> {
  override state = { fault: null as { error: unknown } | null }
  static getDerivedStateFromError(error: unknown) {
    return { fault: { error } }
  }
  override componentDidUpdate(before: { at: string }) {
    if (this.state.fault && before.at !== this.props.at) this.setState({ fault: null })
  }
  override render() {
    return this.state.fault ? <Crashed error={this.state.fault.error} /> : this.props.children
  }
}

const LINKS = [
  ['/', say.nav.overview],
  ['/tasks', say.nav.tasks],
  ['/market', say.nav.market],
  ['/nodes', say.nav.nodes],
  ['/portfolio', say.nav.portfolio],
  ['/desk', say.nav.desk],
  ['/propose', say.nav.propose],
  ['/wallet', say.nav.wallet],
  ['/search', say.nav.search],
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
        <TokenSymbol value={data?.token_symbol ?? null}>
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </TokenSymbol>
      </main>
      <footer className="foot">
        <div>
          <span>{data && say.footer(data.index.block, data.index.behind)}</span>
          <Choice name={say.language} isBare value={LANGUAGE} of={LANGUAGES} change={speak} />
        </div>
      </footer>
    </>
  )
}

/** Moves the focus by hand, because the router would take a link to an id for a path. */
function focusContent(event: { preventDefault: () => void }) {
  event.preventDefault()
  document.getElementById('content')?.focus()
}

const THEMES = (['system', 'light', 'dark'] as const).map((theme) => [theme, say.theme[theme]] as const)

function Theme() {
  const { dataset } = document.documentElement
  const [theme, setTheme] = useState(() => THEMES.find(([one]) => one === dataset.theme)?.[0] ?? 'system')
  const choose = (chosen: typeof theme) => {
    setTheme(chosen)
    if (chosen === 'system') {
      delete dataset.theme
      localStorage.removeItem('theme')
    } else {
      dataset.theme = chosen
      localStorage.setItem('theme', chosen)
    }
  }
  return <Choice name={say.theme.label} isBare value={theme} of={THEMES} change={choose} />
}

function Crashed({ error }: { error: unknown }) {
  return (
    <main>
      <Page title={say.name} lead={say.crashed}>
        <pre className="wrap">{messageOf(error)}</pre>
      </Page>
    </main>
  )
}
