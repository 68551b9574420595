/** Claims a position's rewards, and delegates exactly the stated amount to the same node again. */
import { useState } from 'react'
import { parseEventLogs, type Address, type TransactionReceipt } from 'viem'
import { stakingAbi } from '../generated/abi'
import { same, shortened } from '../lib/accounts'
import { formatExactly } from '../lib/amounts'
import { numberOf } from '../lib/enums'
import { Dialog } from '../parts/dialog'
import { restake as words } from '../strings/earnings'
import { usePermit } from './permit'
import type { Holding } from './positions'
import { isBusy, useCalls, type Flow, type Step } from './sending'

/** Claimed tokens that no delegation has used. */
interface Standing {
  account: Address
  to: Holding
  amount: bigint
}

export function useRestake(account: Address, { send }: Flow) {
  const { staking } = useCalls()
  const sign = usePermit(account)
  const [standing, setStanding] = useState<Standing | null>(null)
  const delegate = async ({ node, role }: Holding, amount: bigint) =>
    staking('delegateWithPermit', node, numberOf(role), amount, ...(await sign(amount)))
  const run = async (...steps: Step[]) => {
    if (await send(...steps)) setStanding(null)
  }
  return {
    standing: same(standing?.account, account) ? standing : null,
    keep: () => setStanding(null),
    goOn: ({ to, amount }: Standing) => run(() => delegate(to, amount)),
    /** The amount does not change any more, however much vests until the first step is done. */
    go: (to: Holding, amount: bigint) =>
      run(staking('claim', to.node, numberOf(to.role)), (receipt) => {
        const claimed = claimedBy(receipt, account)
        const left = claimed < amount ? claimed : amount
        if (left > 0n) setStanding({ account, to, amount: left })
        if (left < amount) throw new Error(words.less(formatExactly(left)))
        return delegate(to, amount)
      }),
  }
}

function claimedBy(receipt: TransactionReceipt | null, account: Address): bigint {
  const events = parseEventLogs({ abi: stakingAbi, eventName: 'Claimed', logs: receipt?.logs ?? [] })
  return events.filter(({ args }) => same(args.delegator, account)).reduce((sum, { args }) => sum + args.amount, 0n)
}

/** Says what stands after the second step failed. */
export function StandingClaim({ of, flow }: { of: ReturnType<typeof useRestake>; flow: Flow }) {
  const { standing } = of
  if (!standing || isBusy(flow.sending)) return null
  return (
    <div className="notice wait" role="status">
      <span>{words.stands(formatExactly(standing.amount))}</span>
      <button type="button" onClick={() => void of.goOn(standing)}>
        {words.goOn}
      </button>
      <button type="button" className="plain" onClick={of.keep}>
        {words.keep}
      </button>
    </div>
  )
}

/** States the steps and the amount. Both are locked while it is open. */
export function Restake({ of, cancel, go }: { of: Holding; cancel: () => void; go: (amount: bigint) => void }) {
  const [amount] = useState(of.claimable)
  return (
    <Dialog title={words.title} close={cancel} go={() => go(amount)}>
      <ol>
        {words.steps(formatExactly(amount), shortened(of.node)).map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
      <p className="soft">{words.means}</p>
    </Dialog>
  )
}
