import { describe, expect, it } from 'vitest'
import { addEvent, isConcerned, nothing } from '../src/lib/concern'

const NODE = '0x00000000000000000000000000000000000000Aa'
const OTHER = '0x00000000000000000000000000000000000000bB'

function concern(values: unknown) {
  const found = nothing()
  addEvent(found, { values })
  return found
}

describe('events name the queries that they concern', () => {
  const delegated = concern({ node: NODE, role: '1', delegator: OTHER, amount: '5', points: '0x00' })
  it.each([
    [['node', NODE, 'hospital'], true],
    [['node', NODE.toLowerCase(), 'hospital', 'history'], true],
    [['delegations', { delegator: OTHER, limit: 25 }], true],
    [['delegations', { node: NODE.replace('Aa', 'Ab') }], false],
    [['nodes', { sort: '-assets' }], false],
    [['network'], false],
    [['task', 1], false],
  ])('a delegation: %j is %s', (key, expected) => expect(isConcerned(key, delegated)).toBe(expected))

  const settled = concern({ taskId: '3', round: '1' })
  it.each([
    [['task', 3, 'rounds'], true],
    [['task', 4], false],
    [['tasks', {}], false],
  ])('a settled round: %j is %s', (key, expected) => expect(isConcerned(key, settled)).toBe(expected))

  it.each([null, undefined, 7, 'text', { values: null }, { values: [NODE] }, { values: { taskId: 3 } }])(
    'an event that is none concerns no task: %j',
    (event) => {
      const found = nothing()
      addEvent(found, event)
      expect(found.tasks.size).toBe(0)
    },
  )
})
