const LIST = 'the task file does not hold: '

/** The single faults of what `POST /v1/tasks/check` says is wrong, each with its place. */
export function faultsOf(problem: string): string[] {
  return problem.startsWith(LIST) ? problem.slice(LIST.length).split('; ') : [problem]
}
