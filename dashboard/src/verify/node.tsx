import { useQuery } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { config as configQuery, type Config } from '../api/config'
import { Fault, Loading } from '../parts/basics'
import { Choice } from '../parts/choice'
import { useWallets } from '../parts/wallets'
import * as say from '../strings'
import type { Node } from './chain'

const words = say.verify

/** The choice among the site's chain node and those of wallets. The children need one. */
export function WithNode({ children }: { children: (config: Config, node: Node) => ReactNode }) {
  const { data: config, error, refetch } = useQuery(configQuery())
  const wallets = useWallets()
  const [chosen, choose] = useState<string>()
  if (!config) return error ? <Fault error={error} retry={() => void refetch()} /> : <Loading />
  const url = config.chainUrl
  const nodes: Node[] = [
    ...(url === null ? [] : [{ name: words.nodeOfSite(new URL(url).host), url }]),
    ...wallets.map(({ name, request }) => ({ name: words.nodeOfWallet(name), request })),
  ]
  const node = nodes.find((one) => one.name === chosen) ?? nodes[0]
  return (
    <>
      {nodes.length > 1 && (
        <div className="tools">
          <Choice
            name={words.node}
            value={node?.name ?? ''}
            of={nodes.map(({ name }) => [name, name] as const)}
            change={choose}
          />
        </div>
      )}
      {node ? children(config, node) : <p className="notice wait">{words.noNode}</p>}
    </>
  )
}
