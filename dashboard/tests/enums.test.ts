import { expect, test } from 'vitest'
import staking from '../../chain/contracts/src/interfaces/IStaking.sol?raw'
import tasks from '../../chain/contracts/src/interfaces/ITaskTypes.sol?raw'
import { OUTCOMES, PHASES, ROLES } from '../src/lib/enums'

test.each([
  ['Phase', tasks, PHASES],
  ['Outcome', tasks, OUTCOMES],
  ['Role', staking, ROLES],
])('%s has the contract’s members in its order', (name, source, members) => {
  const [, body = ''] = new RegExp(`enum ${name} \\{([^}]*)\\}`).exec(source) ?? []
  const declared = body.replaceAll(/\/\/.*/g, '').match(/\w+/g) ?? []
  expect(declared.map((member) => member.toLowerCase())).toEqual(members)
})
