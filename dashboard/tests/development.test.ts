import { expect, test } from 'vitest'
import { isDevelopment } from '../src/lib/development'

test.each([
  [31_337, 'http://127.0.0.1:8545', true],
  [31_337, 'http://localhost:8545', true],
  [31_337, 'http://[::1]:8545', true],
  [31_337, null, false], // only the wallet has a node: it may be anywhere
  [31_337, 'not an address', false],
  [31_337, 'https://rpc.example.org', false],
  [31_337, 'https://127.0.0.1.example.org', false],
  [31_337, 'https://127.0.0.1@example.org', false],
  [1, 'http://127.0.0.1:8545', false],
  [11_155_111, 'http://127.0.0.1:8545', false],
])('chain %i at %s: tokens are given away: %s', (chainId, chainUrl, expected) => {
  expect(isDevelopment({ chainId, chainUrl })).toBe(expected)
})
