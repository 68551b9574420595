/** A task's course: joining, its rounds and its end, and the phases of the round that runs. */
import type { Phase, Schemas } from '../api/client'
import { PHASES } from './enums'

type Task = Pick<Schemas['Task'], 'phase' | 'round' | 'last_round'>
type State = 'done' | 'now' | 'due'
export type Step =
  { kind: 'joining' | 'end'; state: State } | { kind: 'rounds'; from: number; to: number; state: State }

const SHOWN_APART = 3 // rounds before the present one

/** Eight steps at most: earlier rounds are one step, and so are later ones. `hasBegun`: its first round has. */
export function courseOf({ phase, round, last_round: last }: Task, hasBegun: boolean): Step[] {
  const isJoining = phase === 'joining' || phase === 'none'
  const hasEnded = phase === 'ended'
  const rounds = (from: number, to: number, state: State): Step[] =>
    from > to ? [] : [{ kind: 'rounds', from, to, state }]
  const present = isJoining || !hasBegun ? -1 : hasEnded ? last + 1 : round
  const apart = Math.max(0, present - SHOWN_APART)
  return [
    { kind: 'joining', state: isJoining ? 'now' : 'done' },
    ...rounds(0, apart - 1, 'done'),
    ...Array.from({ length: Math.max(0, present - apart) }, (_, at) => rounds(apart + at, apart + at, 'done')).flat(),
    ...(present < 0 || hasEnded ? [] : rounds(round, round, 'now')),
    ...(hasEnded ? [] : rounds(present + 1, last, 'due')),
    { kind: 'end', state: hasEnded ? 'now' : 'due' },
  ]
}

/** The phases that the present round has, in order, with those that only trouble brings if it is there. */
export function phasesOf(round: number, present: Phase, hasDecoys: boolean): { phase: Phase; state: State }[] {
  const at = PHASES.indexOf(present)
  const usual = (phase: Phase) => {
    if (phase === 'committing' || phase === 'uploading' || phase === 'publishing') return true
    if (round === 0 || phase === 'disputing' || phase === 'settling') return false
    return phase !== 'disclosing' || hasDecoys
  }
  return PHASES.slice(PHASES.indexOf('forming'), PHASES.indexOf('ended'))
    .filter((phase) => phase === present || usual(phase))
    .map((phase) => {
      const own = PHASES.indexOf(phase)
      return { phase, state: own < at ? 'done' : own === at ? 'now' : 'due' }
    })
}
