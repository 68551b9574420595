/** Brings the network, its token and, on a development chain, test tokens into a wallet. */
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'react-router'
import { erc20Abi, numberToHex, UserRejectedRequestError, type Address } from 'viem'
import { useBalance as useEther, useConfig, useConnection } from 'wagmi'
import { getConnectorClient, readContract, switchChain } from 'wagmi/actions'
import { DECIMALS, formatEther, formatTokens } from '../lib/amounts'
import { isDevelopment } from '../lib/development'
import { Card, Loading, Notice } from '../parts/basics'
import * as say from '../strings'
import { Choose, ConnectedAs } from './connect'
import { refusal } from './errors'
import { ETHER, fund, TOKENS } from './faucet'
import { useBalance, useNetwork, WithWallet } from './provider'

const words = say.setup
type Step = keyof typeof words.step

export default function SetUp() {
  return (
    <WithWallet>
      <Connection />
    </WithWallet>
  )
}

function Connection() {
  const { address } = useConnection()
  if (!address) return <Choose />
  return (
    <Card title={words.steps}>
      <ConnectedAs account={address} />
      <Steps account={address} key={address} />
    </Card>
  )
}

function Steps({ account }: { account: Address }) {
  const network = useNetwork()
  const client = useQueryClient()
  const act = useActs(account)
  const [done, setDone] = useState<ReadonlySet<Step>>(new Set())
  const [running, setRunning] = useState<Step | null>(null)
  const [failed, setFailed] = useState('')
  const steps: readonly Step[] = ['network', ...(isDevelopment(network) ? (['funds'] as const) : []), 'token']

  async function go() {
    setFailed('')
    setDone(new Set())
    try {
      for (const step of steps) {
        setRunning(step)
        await act[step]()
        setDone((before) => new Set([...before, step]))
      }
    } catch (error) {
      setFailed(refusal(error))
    } finally {
      setRunning(null)
      void client.invalidateQueries()
    }
  }

  const isDone = steps.every((step) => done.has(step))
  return (
    <>
      <div>
        <button type="button" className={isDone ? '' : 'main'} disabled={running !== null} onClick={() => void go()}>
          {isDone ? words.again : words.go}
        </button>
      </div>
      <ol className="steps acts">
        {steps.map((step, index) => (
          <li key={step} data-state={done.has(step) ? 'holds' : 'waits'}>
            <span className="mark" aria-hidden="true">
              {done.has(step) ? '✓' : index + 1}
            </span>
            <div className="stack">
              <strong>{words.step[step]}</strong>
              <p className="soft small">
                {step === 'funds' ? words.means.funds(formatEther(ETHER), formatTokens(TOKENS)) : words.means[step]}
              </p>
              <p role="status" className={done.has(step) ? 'good' : 'soft'}>
                {words.state[done.has(step) ? 'done' : running === step ? 'runs' : 'waits']}
              </p>
            </div>
          </li>
        ))}
      </ol>
      {failed && <Notice kind="bad">{failed}</Notice>}
      {isDone && <Held account={account} />}
    </>
  )
}

function Held({ account }: { account: Address }) {
  const { data: ether } = useEther({ address: account })
  const tokens = useBalance(account)
  if (ether === undefined || tokens === undefined) return <Loading />
  return (
    <Notice kind="good">
      <span>{words.held(formatEther(ether.value), formatTokens(tokens))}</span>
      <Link to="/propose">{words.next}</Link>
    </Notice>
  )
}

/** Each step's action. All may be done again. */
function useActs(account: Address): Record<Step, () => Promise<void>> {
  const config = useConfig()
  const network = useNetwork()
  const wallet = () => getConnectorClient(config, { account, assertChainId: false })
  return {
    network: async () => {
      if (network.chainUrl !== null) {
        const chain = {
          chainId: numberToHex(network.chainId),
          chainName: say.wallet.chain(network.chainId),
          nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
          rpcUrls: [network.chainUrl],
        }
        await (await wallet()).request({ method: 'wallet_addEthereumChain', params: [chain] })
      }
      await switchChain(config, { chainId: network.chainId })
    },
    token: async () => {
      const symbol = await readContract(config, { address: network.token, abi: erc20Abi, functionName: 'symbol' })
      const options = { address: network.token, symbol, decimals: DECIMALS }
      try {
        await (await wallet()).request({ method: 'wallet_watchAsset', params: { type: 'ERC20', options } })
      } catch (error) {
        if (error instanceof UserRejectedRequestError) throw error
        throw new Error(words.declinedToken)
      }
    },
    funds: () => fund(network, account),
  }
}
