import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { useContext } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test, vi } from 'vitest'
import { Tokens } from '../src/parts/basics'
import { IsShown, Shown } from '../src/parts/dialog'

vi.hoisted(() => vi.stubGlobal('document', { baseURI: 'http://localhost/' })) // the client of the API asks for it

const Probe = () => (useContext(IsShown) ? 'in sight' : 'out of sight')

test.each([
  [true, true, 'in sight'],
  [true, false, 'out of sight'],
  [false, true, 'out of sight'],
])('what is in hidden parts knows that it is (%s, %s)', (outer, inner, expected) => {
  const drawn = renderToStaticMarkup(
    <Shown when={outer}>
      <Shown when={inner}>
        <Probe />
      </Shown>
    </Shown>,
  )
  expect(drawn).toContain(`>${expected}<`)
  expect(drawn.split('hidden').length - 1).toBe(Number(!outer) + Number(!inner))
})

test('an amount that is not read is not shown as zero', () => {
  const drawn = (of: bigint | undefined) =>
    renderToStaticMarkup(
      <QueryClientProvider client={new QueryClient()}>
        <Tokens of={of} />
      </QueryClientProvider>,
    )
  expect(drawn(undefined)).toContain('not known yet')
  expect(drawn(undefined)).not.toContain('0')
  expect(drawn(0n)).toContain('0.00')
})
