/** A task's model: its files, if the server has them, and the command that derives it from the chain. */
import { useQuery } from '@tanstack/react-query'
import { lazy } from 'react'
import { BASE, type Schemas } from '../api/client'
import { config } from '../api/config'
import { models } from '../api/queries'
import { formatBytes } from '../lib/amounts'
import { hasModel } from '../lib/metrics'
import * as say from '../strings'
import { Command } from './command'
import { Card, OnDemand } from './basics'

const Predict = lazy(() => import('../predict/panel'))
const words = say.operate
const GRAPHS: readonly string[] = ['model-int8.onnx', 'model.onnx']

export function Model({ task }: { task: Schemas['Task'] }) {
  const { data: network } = useQuery(config())
  const isPossible = hasModel(task)
  const { data: found } = useQuery({ ...models(task.task), enabled: isPossible })
  const command = [
    `consilium operator download-model ${task.task} --output task-${task.task}`,
    `--rpc ${network?.chainUrl ?? 'URL'} --address-book deployment.json --artifacts artifacts`,
  ].join(' \\\n    ')
  return (
    <Card title={words.model} means={words.modelMeans}>
      {found?.items.map((model) => (
        <Files key={model.sha256} task={task.task} of={model} />
      ))}
      {isPossible ? (
        <>
          {found?.items.length ? <p>{words.modelDoubt}</p> : null}
          <Command of={command} />
          <p className="soft small">
            {words.modelSources} {task.phase !== 'ended' && words.modelSoFar}
          </p>
        </>
      ) : (
        <p className="soft">{words.modelNone}</p>
      )}
    </Card>
  )
}

function Files({ task, of }: { task: number; of: Schemas['ModelView'] }) {
  const [graph] = of.files.filter(({ name }) => GRAPHS.includes(name)).sort((a, b) => a.size - b.size)
  return (
    <>
      <p className={of.verified ? '' : 'bad'}>{words.modelAfter(of.round, of.rounds, of.verified)}</p>
      <ul className="files" aria-label={words.modelFiles}>
        {of.files.map((file) => (
          <li key={file.name}>
            <a href={`${BASE}/v1/tasks/${task}/model/${file.name}`} download>
              {file.name}
            </a>{' '}
            <span className="soft small">
              {words.modelFile[file.name]}, {formatBytes(file.size)}
            </span>
          </li>
        ))}
      </ul>
      {graph && (
        <OnDemand open={say.predict.open} isMain>
          <Predict task={task} version={of.sha256} graph={graph} />
        </OnDemand>
      )}
    </>
  )
}
