import type * as en from '../timeline'

export const timeline: typeof en.timeline = {
  title: 'Curso de la tarea',
  joining: 'Inscripción',
  round: (n) => (n === 0 ? 'Ronda 0 (estadísticas)' : `Ronda ${n}`),
  rounds: (from, to) => (from === to ? timeline.round(from) : `Rondas ${from} a ${to}`),
  end: 'Fin',
  state: { done: 'hecho', now: 'ahora', due: 'por venir' },
  phases: (round) => `Fases de: ${round}`,
}
