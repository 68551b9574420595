import { createContext, useContext, useLayoutEffect, useRef, type ReactNode } from 'react'
import * as say from '../strings'

/** False within what is hidden: a modal dialog there would keep the rest of the page from being used. */
export const IsShown = createContext(true)

/** Children that stay in the page, with what was entered, while they are out of sight. */
export function Shown({ when, children }: { when: boolean; children: ReactNode }) {
  const isShown = useContext(IsShown) && when
  return (
    <div hidden={!when} className={when ? 'stack' : undefined}>
      <IsShown value={isShown}>{children}</IsShown>
    </div>
  )
}

/** Asks before an action. It is modal: the browser keeps the focus in it, and closes it by Escape. While it is not open, it
 * keeps what was entered.
 */
export function Dialog({
  title,
  go,
  close,
  isOpen = true,
  isReady = true,
  children,
}: {
  title: string
  /** The action. Its button is enabled while the form `isReady`. */
  go: () => void
  close: () => void
  isOpen?: boolean
  isReady?: boolean
  children: ReactNode
}) {
  const ref = useRef<HTMLDialogElement>(null)
  const isModal = useContext(IsShown) && isOpen
  // Closed while it is still in the page: the browser then gives the focus back to the button that opened it.
  useLayoutEffect(() => {
    const dialog = ref.current
    if (!isModal) return
    dialog?.showModal()
    return () => dialog?.close()
  }, [isModal])
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
            {title}
          </button>
          <button type="button" onClick={close}>
            {say.cancel}
          </button>
        </div>
      </form>
    </dialog>
  )
}
