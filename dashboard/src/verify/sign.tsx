import { useState } from 'react'
import type { Address, Hex } from 'viem'
import { useConfig } from 'wagmi'
import { signMessage } from 'wagmi/actions'
import { Notice } from '../parts/basics'
import { audit as words } from '../strings/audit'
import { Connected } from '../wallet/connect'
import { refusal } from '../wallet/errors'

interface Signing {
  message: string
  signed: (account: Address, signature: Hex) => void
}

/** Has the connected account sign a text (EIP-191). */
export default function Sign(of: Signing) {
  return <Connected>{(account) => <Form account={account} {...of} />}</Connected>
}

function Form({ account, message, signed }: Signing & { account: Address }) {
  const config = useConfig()
  const [state, setState] = useState<'idle' | 'asking' | { fault: string }>('idle')
  const sign = () => {
    setState('asking')
    signMessage(config, { account, message }).then(
      (signature) => signed(account, signature),
      (error: unknown) => setState({ fault: refusal(error) }),
    )
  }
  return (
    <>
      <div>
        <button type="button" className="main" disabled={state === 'asking'} onClick={sign}>
          {words.sign}
        </button>
      </div>
      {state === 'asking' && (
        <p role="status" data-news>
          {words.signing}
        </p>
      )}
      {typeof state === 'object' && <Notice kind="bad">{state.fault}</Notice>}
    </>
  )
}
