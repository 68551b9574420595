/** Every text that people read. A file holds one page's; another language is another folder of this shape. */
import { account, compare, decide, node, nodes, record } from './nodes'
import { columns } from './columns'
import { desk } from './desk'
import { general } from './general'
import { profile, search } from './names'
import { operate } from './operate'
import { delegate, portfolio } from './portfolio'
import { predict } from './predict'
import { propose } from './propose'
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
  propose,
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
