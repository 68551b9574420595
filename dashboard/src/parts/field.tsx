import { useId } from 'react'
import { parseTokens } from '../lib/amounts'
import * as say from '../strings'

/** A field of a form, with the fault of its text. */
export function Field(props: {
  name: string
  text: string
  fault: string
  /** The keyboard of a phone; by default one for numbers. */
  inputMode?: 'text'
  change: (text: string) => void
}) {
  const id = useId()
  return (
    <div className="field">
      <label>
        {props.name}
        <input
          inputMode={props.inputMode ?? 'decimal'}
          autoComplete="off"
          value={props.text}
          aria-invalid={props.fault !== ''}
          aria-describedby={id}
          onChange={(event) => props.change(event.target.value)}
        />
      </label>
      <p id={id} className="bad small" role="status">
        {props.fault}
      </p>
    </div>
  )
}

/** The typed amount of tokens, null for none, and the text's fault. An empty text has no fault. */
export function readAmount(text: string, most: bigint | undefined): { amount: bigint | null; fault: string } {
  if (text.trim() === '') return { amount: null, fault: '' }
  const amount = parseTokens(text)
  if (amount === null) return { amount, fault: say.notAmount }
  return { amount, fault: most !== undefined && amount > most ? say.overBalance : '' }
}
