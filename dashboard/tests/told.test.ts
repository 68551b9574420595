import { describe, expect, test } from 'vitest'
import { isWatched, toldOf } from '../src/lib/told'
import { MOST, parsed } from '../src/lib/watching'

const NODE = '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'
const LIST = { tasks: [3], nodes: [NODE.toLowerCase()], isOn: true }

function event(name: string, values: Record<string, unknown>, about: Record<string, unknown> = {}) {
  return { name, values, task: null, round: null, account: null, time: 100, transaction: '0x1', log_index: 2, ...about }
}

describe('events that cost money have words', () => {
  test.each([
    ['Slashed', { amount: String(5n * 10n ** 18n), reason: '3' }, 'lost 5.00 tokens: did not reveal its scores'],
    ['HospitalAbsent', {}, 'did not commit in time'],
    ['RoundVoided', { reason: '8' }, 'the beacon gave no value'],
    ['RoundSettled', { medians: ['1', '2', '3'], acceptedCohorts: '5' }, '1 of 3 cohorts'],
    ['TaskStopped', {}, 'stopped'],
    ['TaskEnded', { refund: '0' }, 'ended'],
    ['PoolWiped', {}, 'took all stake'],
    ['CommissionSet', { commissionBps: '750', effectiveAt: '101' }, '7.5 %'],
  ])('%s', (name, values, text) => {
    expect(toldOf(event(name, values, { task: 3, account: NODE }))?.text).toContain(text)
  })

  test.each([
    ['RoundSettled', { medians: ['1', '2'], acceptedCohorts: '3' }],
    ['RoundSettled', { medians: [], acceptedCohorts: '1' }],
    ['CommissionSet', { commissionBps: '750', effectiveAt: '100' }],
    ['Rewarded', { amount: '1' }],
    ['__proto__', {}],
  ])('%s %j costs nothing', (name, values) => expect(toldOf(event(name, values))).toBeNull())

  test.each([undefined, null, 1, 'x', {}])('%j is no event', (read) => expect(toldOf(read)).toBeNull())
})

describe('only what is watched is told', () => {
  test.each([
    [{ task: 3 }, true],
    [{ task: 4 }, false],
    [{ task: 4, account: NODE }, true],
    [{ account: NODE.replace('C0', 'C1') }, false],
  ])('%j', (about, expected) => {
    const told = toldOf(event('TaskStopped', {}, about))
    expect(told && isWatched(told, LIST)).toBe(expected)
  })
})

describe('a list that another program wrote', () => {
  test.each(['{', '1', '[]', '{"tasks":"x","nodes":{}}', '{"tasks":[0,-1,1.5,"3"],"nodes":["x",null]}'])('%s', (raw) =>
    expect(parsed(raw)).toEqual({ tasks: [], nodes: [], isOn: false }),
  )
  test('has at most fifty entries of a kind', () => {
    const raw = JSON.stringify({
      tasks: Array.from({ length: 99 }, (_, index) => index + 1),
      nodes: [NODE],
      isOn: true,
    })
    expect(parsed(raw)).toMatchObject({ nodes: [NODE.toLowerCase()], isOn: true })
    expect(parsed(raw).tasks).toHaveLength(MOST)
  })
})
