/** A line for a terminal, to be copied. */
import { useState } from 'react'
import { say } from '../strings'

export function Command({ of, label }: { of: string; label?: string }) {
  const [copied, setCopied] = useState(false)
  const copy = () => {
    navigator.clipboard.writeText(of).then(
      () => setCopied(true),
      () => setCopied(false), // it stays in sight, to be selected by hand
    )
  }
  return (
    <div className="command">
      <code role="group" aria-label={label ?? say.command}>
        {of}
      </code>
      {window.isSecureContext && ( // elsewhere there is no clipboard
        <button type="button" onClick={copy} onBlur={() => setCopied(false)}>
          <span aria-live="polite">{copied ? say.copied : say.copy}</span>
        </button>
      )}
    </div>
  )
}
