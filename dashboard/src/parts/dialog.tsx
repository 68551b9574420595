import { useEffect, useRef, type ReactNode } from 'react'

/** Modal: the browser keeps the focus in it, and closes it by Escape. */
export function Dialog({
  title,
  close,
  children,
}: {
  title: string
  close: () => void
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
      {children}
    </dialog>
  )
}
