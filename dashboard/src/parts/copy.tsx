import { useState } from 'react'
import * as say from '../strings'

/** A button that copies a text. `what` names it for those who do not see what is beside the button. */
export function Copy({ of, what }: { of: string; what?: string }) {
  const [copied, setCopied] = useState(false)
  if (!window.isSecureContext) return null // only there is a clipboard
  const copy = () => {
    navigator.clipboard.writeText(of).then(
      () => setCopied(true),
      () => setCopied(false), // it can still be selected by hand
    )
  }
  return (
    <button type="button" className={what ? 'plain' : ''} onClick={copy} onBlur={() => setCopied(false)}>
      <span aria-live="polite">{copied ? say.copied : say.copy}</span>
      {what && <span className="visually-hidden"> {what}</span>}
    </button>
  )
}
