/** The success of membership inference from a task's published sums, as `bench/client/membership.py` measured it. */
import measured from '../../../client/consilium_client/privacy/membership.json'

type Measured = (typeof measured.rows)[number]

export interface AttackSuccess {
  rows: number
  /** `together`: no other hospital of the cohort colludes. `alone`: all others do. */
  together: Measured
  alone: Measured
}

const EPSILONS = [3, 8]
const WITHOUT_NOISE = 'one step a round'

/** The nearest measured setting: with the same noise or less, and as many hospitals in the sum or fewer. */
export function membership(model: string, epsilon: number | null, hospitals: number): AttackSuccess[] {
  const bound = EPSILONS.find((one) => epsilon !== null && epsilon <= one)
  const training = bound === undefined ? WITHOUT_NOISE : `epsilon ${bound}`
  const family = model === 'logistic' ? model : 'mlp'
  const alike = measured.rows.filter((one) => one.model === family && one.training === training)
  return [...new Set(alike.map((one) => one.rows))].flatMap((rows) => {
    const sums = alike.filter((one) => one.rows === rows).sort((a, b) => a.hospitals - b.hospitals)
    const [alone] = sums
    const together = sums.findLast((one) => one.hospitals <= hospitals) ?? alone
    return alone && together ? [{ rows, together, alone }] : []
  })
}
