import type { Role } from '../api/client'
import { say } from '../strings'
import { isKey } from './keys'

export const ROLES: readonly Role[] = ['hospital', 'voter', 'aggregator'] // by the contract's numbers

export function isRole(text: unknown): text is Role {
  return isKey(text, say.role)
}

/** As calls and events of the contracts have it. */
export function numberOf(role: Role): number {
  return ROLES.indexOf(role)
}

/** For a choice among them. */
export const ROLE_NAMES = ROLES.map((role) => [role, say.role[role]] as const)
