import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiProblem } from './api/client'
import { App } from './app'
import { keepFocus } from './parts/focus'
import './theme/index.css'

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // A refusal would be the same again. An answer that did not come, or a fault of the server, may change.
      retry: (failures, error) => !(error instanceof ApiProblem && error.status < 500) && failures < 2,
      refetchInterval: (query) => (query.state.status === 'error' ? 5_000 : false),
    },
  },
})

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no #root')
keepFocus()
// In a task of its own: that in which the program was read is long enough for a phone.
setTimeout(() =>
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  ),
)
