/** Texts of a task's course. */
export const timeline = {
  title: 'Course of the task',
  joining: 'Joining',
  round: (n: number) => (n === 0 ? 'Round 0 (statistics)' : `Round ${n}`),
  rounds: (from: number, to: number) => (from === to ? timeline.round(from) : `Rounds ${from} to ${to}`),
  end: 'End',
  state: { done: 'done', now: 'now', due: 'to come' },
  phases: (round: string) => `Phases of ${round}`,
}
