/** Runs soon after a call, and not again within `between`: the calls meanwhile are one more run. Times in milliseconds. */
export function spaced(soon: number, between: number, run: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let ranAt = -Infinity
  return {
    call() {
      timer ??= setTimeout(
        () => {
          timer = undefined
          ranAt = Date.now()
          run()
        },
        Math.max(soon, ranAt + between - Date.now()),
      )
    },
    stop() {
      clearTimeout(timer)
    },
  }
}
