import { useState } from 'react'
import { useNavigate } from 'react-router'
import { isAccount } from '../lib/accounts'
import * as say from '../strings'

const words = say.account

/** A form that opens the page of an account. */
export function LookUp() {
  const navigate = useNavigate()
  const [bad, setBad] = useState(false)
  return (
    <form
      className="tools"
      onSubmit={(event) => {
        event.preventDefault()
        const entry = new FormData(event.currentTarget).get('account')
        const account = typeof entry === 'string' ? entry.trim() : ''
        setBad(!isAccount(account))
        if (isAccount(account)) void navigate(`/accounts/${account}`)
      }}
    >
      <label>
        {words.look}
        <input
          name="account"
          size={46}
          placeholder={words.lookHint}
          autoComplete="off"
          spellCheck={false}
          aria-invalid={bad}
          aria-describedby="look-bad"
        />
      </label>
      <button type="submit">{words.show}</button>
      <p id="look-bad" className="bad" role="status">
        {bad && words.lookBad}
      </p>
    </form>
  )
}
