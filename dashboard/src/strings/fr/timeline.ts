import type * as en from '../timeline'

export const timeline: typeof en.timeline = {
  title: 'Déroulement de la tâche',
  joining: 'Inscription',
  round: (n) => (n === 0 ? 'Tour 0 (statistiques)' : `Tour ${n}`),
  rounds: (from, to) => (from === to ? timeline.round(from) : `Tours ${from} à ${to}`),
  end: 'Fin',
  state: { done: 'fait', now: 'maintenant', due: 'à venir' },
  phases: (round) => `Phases de : ${round}`,
}
