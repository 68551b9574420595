import { describe, expect, it } from 'vitest'
import measured from '../../client/consilium_client/privacy/membership.json'
import { membership } from '../src/lib/membership'

describe('membership', () => {
  it.each([
    [null, 'one step a round'],
    [0.5, 'epsilon 3'],
    [3, 'epsilon 3'],
    [3.1, 'epsilon 8'],
    [8, 'epsilon 8'],
    [8.1, 'one step a round'],
  ])('of a task with epsilon %s is that of %s', (epsilon, training) => {
    const told = membership('logistic', epsilon, 3)
    expect(told.map((one) => one.rows)).toEqual([8, 30, 100])
    for (const { together, alone, rows } of told) {
      expect([together.training, together.rows, together.hospitals]).toEqual([training, rows, 3])
      expect([alone.training, alone.rows, alone.hospitals]).toEqual([training, rows, 1])
      expect(measured.rows).toContainEqual(together)
    }
  })

  it.each([
    [1, [1, 1, 1]],
    [5, [3, 3, 3]],
    [50, [6, 6, 3]], // of 100 rows no six hospitals were measured
  ])('counts no more than %s hospitals', (hospitals, found) => {
    expect(membership('logistic', null, hospitals).map((one) => one.together.hospitals)).toEqual(found)
  })

  it('takes the larger model for all but the smallest', () => {
    expect(membership('lora', null, 3)[0]?.together.model).toBe('mlp')
    expect(membership('logistic', null, 3)[0]?.together.model).toBe('logistic')
  })
})
