import { useEffect, useRef, type ReactNode } from 'react'
import { say } from '../strings'

/** Asks before something is done. Modal: the browser keeps the focus in it, and closes it by Escape. */
export function Dialog({
  title,
  go,
  close,
  isReady = true,
  act = title,
  children,
}: {
  title: string
  /** What the button does that `act` names, once what was filled in `isReady`. */
  go: () => void
  close: () => void
  isReady?: boolean
  act?: string
  children: ReactNode
}) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog ref={ref} aria-label={title} onCancel={close}>
      <h2>{title}</h2>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady) go()
        }}
      >
        {children}
        <div className="tools">
          <button type="submit" className="main" disabled={!isReady}>
            {act}
          </button>
          <button type="button" onClick={close}>
            {say.cancel}
          </button>
        </div>
      </form>
    </dialog>
  )
}
