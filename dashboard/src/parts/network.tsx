/** The network's own values, for a wallet that is set up by hand. */
import { useQuery } from '@tanstack/react-query'
import { config } from '../api/config'
import * as say from '../strings'
import { Card, Facts } from './basics'

const words = say.setup

export function NetworkCard() {
  const { data: network } = useQuery(config())
  if (!network) return null
  return (
    <Card title={words.network} means={words.networkMeans}>
      <Facts
        of={[
          [words.name, say.wallet.chain(network.chainId)],
          [words.chain, <code key="id">{network.chainId}</code>],
          [words.url, network.chainUrl === null ? words.noUrl : <code key="url">{network.chainUrl}</code>],
          [words.token, <code key="token">{network.token}</code>],
        ]}
      />
    </Card>
  )
}
