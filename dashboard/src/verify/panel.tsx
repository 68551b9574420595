export default function Panel({ task, round }: { task: number; round: number }) {
  return <p>{`${task}/${round}`}</p>
}
