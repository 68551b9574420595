import { expect, it, test } from 'vitest'
import { parseSiweMessage } from 'viem/siwe'
import vectors from '../../tests/vectors/sign_in.json'
import { signInMessage } from '../src/lib/signin'
import { propose } from '../src/strings/propose'

it.each(vectors)('is what the server reads, of $given.domain', ({ given, message }) => {
  expect(signInMessage(given)).toBe(message)
  const read = parseSiweMessage(message)
  expect(read).toMatchObject({ address: given.account, chainId: given.chainId, nonce: given.nonce })
  expect(read.statement).toBe(given.statement)
})

test('the statement is the vectors’, whose grammar the server is held to', () => {
  expect(vectors.map(({ given }) => given.statement)).toEqual(vectors.map(() => propose.statement))
})
