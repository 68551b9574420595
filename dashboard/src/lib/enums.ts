/** The contracts' enums, each in its numbers' order. `PHASES` is the one list of phases: add a new one here. */
import type { Phase, Role } from '../api/client'
import * as say from '../strings'

/** `Phase` of ITaskTypes.sol. */
export const PHASES = [
  'none',
  'joining',
  'forming',
  'committing',
  'uploading',
  'publishing',
  'disputing',
  'drawing',
  'scoring',
  'revealing',
  'disclosing',
  'settling',
  'ended',
] as const satisfies readonly Phase[]

/** `Outcome` of ITaskTypes.sol. */
export const OUTCOMES = ['pending', 'settled', 'void'] as const

/** `Role` of IStaking.sol. */
export const ROLES = ['hospital', 'voter', 'aggregator'] as const satisfies readonly Role[]

export function isRole(text: unknown): text is Role {
  return ROLES.some((role) => role === text)
}

/** A role as calls and events of the contracts have it. */
export function numberOf(role: Role): number {
  return ROLES.indexOf(role)
}

/** Options of a choice among the roles. */
export const ROLE_NAMES = ROLES.map((role) => [role, say.role[role]] as const)
