import { parseSignature, type Address } from 'viem'
import { useConfig } from 'wagmi'
import { getPublicClient, signTypedData } from 'wagmi/actions'
import { tokenAbi } from '../generated/abi'
import * as say from '../strings'
import { useNetwork } from './provider'

const PERMIT_SECONDS = 1_800n

/** Signs an approval of tokens for the staking contract (ERC-2612). Throws the wallet's error if the owner declines. */
export function usePermit(account: Address) {
  const network = useNetwork()
  const config = useConfig()
  return async (value: bigint): Promise<readonly [bigint, number, `0x${string}`, `0x${string}`]> => {
    const client = getPublicClient(config, { chainId: network.chainId })
    if (!client) throw new Error(say.wallet.noNode)
    const token = { address: network.token, abi: tokenAbi } as const
    const [nonce, name, block] = await Promise.all([
      client.readContract({ ...token, functionName: 'nonces', args: [account] }),
      client.readContract({ ...token, functionName: 'name' }),
      client.getBlock(),
    ])
    const deadline = block.timestamp + PERMIT_SECONDS
    const signature = await signTypedData(config, {
      account,
      domain: { name, version: '1', chainId: network.chainId, verifyingContract: network.token },
      types: {
        Permit: [
          { name: 'owner', type: 'address' },
          { name: 'spender', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'nonce', type: 'uint256' },
          { name: 'deadline', type: 'uint256' },
        ],
      },
      primaryType: 'Permit',
      message: { owner: account, spender: network.staking, value, nonce, deadline },
    })
    const { r, s, yParity } = parseSignature(signature)
    return [deadline, 27 + yParity, r, s]
  }
}
