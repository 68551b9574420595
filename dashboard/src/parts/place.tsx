/** The network's own values, for a wallet that is set up by hand. */
import { useQuery } from '@tanstack/react-query'
import { config } from '../api/config'
import * as say from '../strings'
import { Card, Facts } from './basics'

const words = say.setup

export function Place() {
  const { data: place } = useQuery(config())
  if (!place) return null
  return (
    <Card title={words.network} means={words.networkMeans}>
      <Facts
        of={[
          [words.name, say.wallet.chain(place.chainId)],
          [words.chain, <code key="id">{place.chainId}</code>],
          [words.url, place.chainUrl === null ? words.noUrl : <code key="url">{place.chainUrl}</code>],
          [words.token, <code key="token">{place.token}</code>],
        ]}
      />
    </Card>
  )
}
