/** The one rule for which yields are shown. Rates and yields are in millionths. */
import type { Schemas } from '../api/client'

export interface Yield {
  /** After commission and slashes, over `seconds`. */
  net: number
  seconds: number
  /** As a simple rate of 365 days; null if `seconds` are less than a day. */
  aYear: number | null
}

/** A node's yield; null of a new node, whose first rewards would be taken for a rate. */
export function yieldOf({
  is_new: isNew,
  realised_yield: { since, until, net },
  annual_rate: aYear,
}: Schemas['YieldOver']): Yield | null {
  return isNew ? null : { net, seconds: until - since, aYear }
}
