import type * as en from '../timeline'

export const timeline: typeof en.timeline = {
  title: 'Verlauf der Aufgabe',
  joining: 'Beitritt',
  round: (n) => (n === 0 ? 'Runde 0 (Statistik)' : `Runde ${n}`),
  rounds: (from, to) => (from === to ? timeline.round(from) : `Runden ${from} bis ${to}`),
  end: 'Ende',
  state: { done: 'fertig', now: 'jetzt', due: 'steht aus' },
  phases: (round) => `Phasen von ${round}`,
}
