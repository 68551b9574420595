import { expect, test } from 'vitest'
import { walletLinks } from '../src/lib/walletlinks'

test('a phone’s wallets get the very page, with its folder, path and query', () => {
  const page = 'https://example.org:8443/app/#/nodes/0xab/hospital?days=30&x=1'
  const [metamask, coinbase, trust] = walletLinks(page).map(({ href }) => new URL(href))
  expect(metamask?.href).toBe('https://link.metamask.io/dapp/example.org:8443/app/nodes/0xab/hospital?days=30&x=1')
  expect(coinbase?.searchParams.get('cb_url')).toBe(page)
  expect(coinbase?.host).toBe('go.cb-w.com')
  expect([...(trust?.searchParams ?? [])]).toEqual([
    ['coin_id', '60'],
    ['url', page],
  ])
  expect(trust?.hash).toBe('')
})

test('the first page has an empty path', () => {
  expect(walletLinks('https://example.org/')[0]?.href).toBe('https://link.metamask.io/dapp/example.org/')
  expect(walletLinks('https://example.org/#/')[0]?.href).toBe('https://link.metamask.io/dapp/example.org/')
})

test('no link changes a page without TLS into one with it', () => {
  expect(walletLinks('http://10.0.0.5:8080/#/desk').map(({ wallet }) => wallet)).not.toContain('MetaMask')
})
