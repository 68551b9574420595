/** A button that puts a task or a node on the watch list, or takes it off. */
import { useState } from 'react'
import { Link } from 'react-router'
import { keepList, useWatchList } from '../lib/watching'
import { told as words } from '../strings/told'

export function Watch({ of }: { of: { task: number } | { node: string } }) {
  const { tasks, nodes } = useWatchList()
  const [isFull, setFull] = useState(false)
  const isWatched = 'task' in of ? tasks.includes(of.task) : nodes.includes(of.node.toLowerCase())
  const toggle = () => {
    const changes = 'task' in of ? { tasks: toggled(tasks, of.task) } : { nodes: toggled(nodes, of.node.toLowerCase()) }
    setFull(!keepList(changes))
  }
  return (
    <span className="tools checked small">
      <button type="button" onClick={toggle}>
        {isWatched ? words.watched : words.watch}
      </button>
      {isWatched && <Link to="/told">{words.title}</Link>}
      {isFull && (
        <span className="bad" role="alert">
          {words.full}
        </span>
      )}
    </span>
  )
}

function toggled<T>(list: readonly T[], one: T): T[] {
  return list.includes(one) ? list.filter((other) => other !== one) : [...list, one]
}
