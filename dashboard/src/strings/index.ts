/** The texts that people read, without those of ./propose, which only its page loads. A file holds one page's; another
 * language is another folder of this shape.
 */
import { account, compare, decide, node, nodes, record } from './nodes'
import { columns } from './columns'
import { desk } from './desk'
import { general } from './general'
import { profile, search } from './names'
import { operate } from './operate'
import { delegate, portfolio } from './portfolio'
import { predict } from './predict'
import { question } from './question'
import { report } from './report'
import { round } from './round'
import { setup } from './setup'
import { overview, quality, task, tasks } from './tasks'
import { verify } from './verify'
import { refused, sending, wallet } from './wallet'

export const say = {
  ...general,
  account,
  columns,
  compare,
  decide,
  delegate,
  desk,
  node,
  nodes,
  operate,
  overview,
  portfolio,
  predict,
  profile,
  quality,
  question,
  record,
  refused,
  report,
  round,
  search,
  sending,
  setup,
  task,
  tasks,
  verify,
  wallet,
} as const
