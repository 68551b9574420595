/** A command for a terminal, with a button that copies it. */
import { useState } from 'react'
import { say } from '../strings'

export function Command({ of }: { of: string }) {
  const [copied, setCopied] = useState(false)
  const copy = () => {
    navigator.clipboard.writeText(of).then(
      () => setCopied(true),
      () => setCopied(false), // it can still be selected by hand
    )
  }
  return (
    <div className="command">
      <code role="group" aria-label={say.command}>
        {of}
      </code>
      {window.isSecureContext && ( // only there is a clipboard
        <button type="button" onClick={copy} onBlur={() => setCopied(false)}>
          <span aria-live="polite">{copied ? say.copied : say.copy}</span>
        </button>
      )}
    </div>
  )
}
