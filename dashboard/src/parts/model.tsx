/** How to get a task's model. Nobody serves it: who wants it derives it, and checks each round on the way. */
import { useQuery } from '@tanstack/react-query'
import type { Schemas } from '../api/client'
import { config } from '../api/config'
import { say } from '../strings'
import { Command } from './command'
import { Card } from './basics'

const words = say.operate

export function Model({ task }: { task: Schemas['Task'] }) {
  const { data: place } = useQuery(config())
  const isPossible = task.round > 1 || (task.phase === 'ended' && task.round === 1)
  const command = [
    `consilium operator download-model ${task.task} --output task-${task.task}`,
    `--rpc ${place?.chainUrl ?? 'URL'} --address-book deployment.json --artifacts artifacts`,
  ].join(' \\\n    ')
  return (
    <Card title={words.model} means={words.modelMeans}>
      {isPossible ? (
        <>
          <Command of={command} label={words.command} />
          <p className="soft small">
            {words.modelPlaces} {task.phase !== 'ended' && words.modelSoFar}
          </p>
        </>
      ) : (
        <p className="soft">{words.modelNone}</p>
      )}
    </Card>
  )
}
