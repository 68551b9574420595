/** A command for a terminal, with a button that copies it. */
import * as say from '../strings'
import { Copy } from './copy'

export function Command({ of }: { of: string }) {
  return (
    <div className="command">
      <code role="group" aria-label={say.command}>
        {of}
      </code>
      <Copy of={of} />
    </div>
  )
}
