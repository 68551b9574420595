/** Test ether and tokens on a development chain. Its node signs for the faucet account, so no key is in the page. */
import { createPublicClient, createWalletClient, http, type Address } from 'viem'
import type { Config } from '../api/config'
import { tokenAbi } from '../generated/abi'
import { TOKEN } from '../lib/amounts'
import { isDevelopment } from '../lib/development'
import * as say from '../strings'
import { chainOf } from './provider'

export const ETHER = 10n * 10n ** 18n
export const TOKENS = 200_000n * TOKEN

/** Throws an error on any other chain, and if the node has no account with enough tokens. */
export async function fund(network: Config, account: Address): Promise<void> {
  if (!isDevelopment(network)) throw new Error(say.setup.noFaucet)
  const [chain, transport] = [chainOf(network), http(network.chainUrl)]
  const node = createPublicClient({ chain, transport })
  const unlocked = createWalletClient({ chain, transport })
  if ((await node.getChainId()) !== network.chainId) throw new Error(say.setup.noFaucet)
  const [faucet] = await unlocked.getAddresses()
  const token = { address: network.token, abi: tokenAbi } as const
  const held = faucet && (await node.readContract({ ...token, functionName: 'balanceOf', args: [faucet] }))
  if (!faucet || held === undefined || held < TOKENS) throw new Error(say.setup.noFaucet)
  for (const hash of [
    await unlocked.sendTransaction({ account: faucet, to: account, value: ETHER }),
    await unlocked.writeContract({ ...token, account: faucet, functionName: 'transfer', args: [account, TOKENS] }),
  ])
    await node.waitForTransactionReceipt({ hash })
}
