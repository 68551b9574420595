/** The texts that people read, in English, `say`: `import * as say from '../strings'`. A file holds one page's, and a build
 * puts it where that page's code is. Another language is a folder with the same files, which scripts/build.mjs uses
 * instead of this one. A new text is needed in each: `npm run types` and `tests/strings.test.ts` name those without it.
 */
export * from './general'
export { account, compare, decide, node, nodes, record } from './nodes'
export { columns } from './columns'
export { desk } from './desk'
export { market } from './market'
export { profile, search } from './names'
export { operate } from './operate'
export { delegate, portfolio } from './portfolio'
export { predict } from './predict'
export { question } from './question'
export { report } from './report'
export { round } from './round'
export { setup } from './setup'
export { overview, quality, task, tasks } from './tasks'
export { verify } from './verify'
export { refused, sending, wallet } from './wallet'
export { withdrawal } from './withdrawal'
