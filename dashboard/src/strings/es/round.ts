import type * as en from '../round'

export const round: typeof en.round = {
  title: (n, task) => `Ronda ${n} de la tarea ${task}`,
  cohorts: 'Cohortes',
  yes: 'sí',
  no: 'no',
  unknown: 'aún no',
  match: 'igual a la suma del contrato',
  waits: 'aún no',
  differs: 'difiere',
  flipped: 'con el signo invertido, para poner a prueba al comité',
  fate: { open: 'aún no', published: 'publicada', dropped: 'descartada', accused: 'en disputa' },
  committee: 'Comité',
  committeeMeans:
    'La baliza y la clave de cada evaluador sortean el comité, así que nadie lo conoce de antemano. Los evaluadores se comprometen con sus puntuaciones y luego las revelan.',
  noCommittee: 'El comité no se ha sorteado.',
  verdict: {
    not_revealed: 'no revelado',
    scored: 'revelado',
    does_not_match: 'dice que las sumas publicadas no coinciden',
    stood_down: 'se retiró',
  },
  invalid: 'sin modelo válido',
  otherReading: (scores) => `leído con el signo invertido: ${scores}`,
  events: (n) => `${n} eventos`,
  spread: 'Dispersión de las puntuaciones',
  noPayments: 'Esta ronda no pagó recompensas ni aplicó slashes.',
  commitments: 'Compromisos',
  unshown: 'no mostrados',
  evidence: 'Pruebas',
  evidenceMeans: 'Esta página se construye con estos eventos del contrato.',
  verify: 'Verifique usted esta ronda',
  verifyMeans:
    'Su navegador lee la cadena, suma los compromisos, obtiene las sumas publicadas y vuelve a calcular sus compromisos. No confía en el servidor de este sitio para ningún dato de la ronda.',
  verifyStart: 'Verificar ahora',
}
