import { pluralIn } from '../../lib/language'
import type * as en from '../payouts'
import { reason as reasons } from './general'

const plural = pluralIn('es')
const list = new Intl.ListFormat('es')

export const payouts: typeof en.payouts = {
  title: 'Pagados y no pagados',
  means:
    'De los eventos del contrato y las condiciones de la tarea. La llamada «explain» del contrato da los mismos motivos.',
  contribution: 'Contribución',
  contributionMeans: (rounds) =>
    `La parte de un hospital es su peso por sus rondas en sumas aceptadas, respecto a todos los hospitales juntos. El pago por ronda es de ${plural(rounds, 'la última ronda que pagó', `las últimas ${rounds} rondas que pagaron`)}.`,
  share: 'Parte',
  ofRound: (round) => `Ronda ${round}`,
  settled: (accepted, cohorts, paid) =>
    `Esta ronda está liquidada: se aceptó ${accepted} de ${cohorts} ${plural(cohorts, 'cohorte', 'cohortes')}, y ${paid}.`,
  paid: (parties, amount) => `en conjunto se pagaron ${amount} a ${parties}`,
  nothing: 'no se pagaron recompensas',
  parties: (hospitals, voters, aggregator) =>
    list.format([
      ...(hospitals ? [`${hospitals} ${plural(hospitals, 'hospital', 'hospitales')}`] : []),
      ...(voters ? [`${voters} ${plural(voters, 'evaluador', 'evaluadores')}`] : []),
      ...(aggregator ? ['el agregador'] : []),
    ]),
  statistics: 'Esta ronda está liquidada: sumó estadísticas para escalar los datos, así que no paga recompensas.',
  void: (why) => `Esta ronda es nula: ${why}. No paga recompensas.`,
  running: (phase) => `Esta ronda no ha terminado: ${phase} El contrato paga al final.`,
  more: (n) => `${n} más`,
  wasNotPaid: (round) => ` no recibió pago en la ronda ${round}: `,
  lastRound: (round) => `Ronda ${round}, la última terminada`,
  why: {
    sat_out: () => 'no estaba en ninguna cohorte de esta ronda.',
    not_committed: () => 'no se comprometió con ninguna actualización.',
    not_in_sum: () => 'su actualización no está en ninguna suma publicada.',
    harmful: (median, floor) =>
      `tuvo un slash, porque la mediana ${median} de su cohorte está por debajo del límite ${floor}.`,
    rejected: (median, floor) => `la mediana ${median} de su cohorte está por debajo del umbral ${floor}.`,
    no_improvement: (median) => `la mediana ${median} de su cohorte se acepta, pero no es una mejora.`,
    no_rank: (median, floor) => `su mediana ${median} está por debajo de ${floor}, la menor que tiene puesto.`,
    no_seat: () => 'no salió en el sorteo del comité.',
    stood_down: () => 'se retiró del comité.',
    not_revealed: () => 'no reveló sus puntuaciones.',
    does_not_match: () =>
      'dijo que las sumas publicadas no coinciden, y la mayoría de los evaluadores no estuvo de acuerdo.',
    invalid: () => 'llamó modelo inválido a una suma, y la mayoría de los evaluadores no estuvo de acuerdo.',
    far: (score, reach, median) => `su puntuación ${score} está a más de ${reach} de la mediana ${median}.`,
    untested: () => 'ninguna suma se distinguió lo bastante de su señuelo para poner a prueba al comité.',
    failed_decoy: (decoy, score) =>
      `tuvo un slash, porque puntuó una suma con el signo invertido con ${decoy} y la verdadera con ${score}.`,
    late: () => 'actuó en un plazo de gracia, que le cuesta el honorario de la ronda.',
    slashed: (reason) => `tuvo un slash, porque ${reasons[reason]}.`,
  },
}
