const LIST = 'the task file is invalid: '

/** The single faults in the problem of `POST /v1/tasks/check`, each with its field. The API has no list of them. */
export function faultsOf(problem: string): string[] {
  return problem.startsWith(LIST) ? problem.slice(LIST.length).split('; ') : [problem]
}
