import { pluralIn } from '../../lib/language'
import type * as en from '../payouts'
import { reason as reasons } from './general'

const plural = pluralIn('fr')
const list = new Intl.ListFormat('fr')

export const payouts: typeof en.payouts = {
  title: 'Payés et non payés',
  means:
    'D’après les événements du contrat et les conditions de la tâche. L’appel « explain » du contrat donne les mêmes raisons.',
  contribution: 'Contribution',
  contributionMeans: (rounds) =>
    `La part d’un hôpital est son poids multiplié par ses tours dans des sommes acceptées, rapportée à tous les hôpitaux ensemble. La paie par tour est celle ${plural(rounds, 'du dernier tour qui a payé', `des ${rounds} derniers tours qui ont payé`)}.`,
  share: 'Part',
  ofRound: (round) => `Tour ${round}`,
  settled: (accepted, cohorts, paid) =>
    `Ce tour est réglé : ${accepted} ${plural(accepted, 'cohorte acceptée', 'cohortes acceptées')} sur ${cohorts}, et ${paid}.`,
  paid: (parties, amount) => `${amount} ont été payés au total à ${parties}`,
  nothing: 'aucune récompense n’a été payée',
  parties: (hospitals, voters, aggregator) =>
    list.format([
      ...(hospitals ? [`${hospitals} ${plural(hospitals, 'hôpital', 'hôpitaux')}`] : []),
      ...(voters ? [`${voters} ${plural(voters, 'évaluateur', 'évaluateurs')}`] : []),
      ...(aggregator ? ['l’agrégateur'] : []),
    ]),
  statistics:
    'Ce tour est réglé : il a additionné des statistiques pour mettre les données à l’échelle, donc il ne paie pas de récompenses.',
  void: (why) => `Ce tour est nul : ${why}. Il ne paie pas de récompenses.`,
  running: (phase) => `Ce tour n’est pas terminé : ${phase} Le contrat paie à la fin.`,
  more: (n) => `${n} de plus`,
  wasNotPaid: (round) => ` n’a pas été payé au tour ${round} : `,
  lastRound: (round) => `Tour ${round}, le dernier terminé`,
  why: {
    sat_out: () => 'il n’était dans aucune cohorte de ce tour.',
    not_committed: () => 'il ne s’est engagé sur aucune mise à jour.',
    not_in_sum: () => 'sa mise à jour n’est dans aucune somme publiée.',
    harmful: (median, floor) => `il a été slashé, car la médiane ${median} de sa cohorte est sous la limite ${floor}.`,
    rejected: (median, floor) => `la médiane ${median} de sa cohorte est sous le seuil ${floor}.`,
    no_improvement: (median) => `la médiane ${median} de sa cohorte est acceptée, mais n’est pas une amélioration.`,
    no_rank: (median, floor) => `sa médiane ${median} est inférieure à ${floor}, la plus petite qui a un rang.`,
    no_seat: () => 'il n’a pas été tiré au sort pour le comité.',
    stood_down: () => 'il s’est retiré du comité.',
    not_revealed: () => 'il n’a pas révélé ses notes.',
    does_not_match: () =>
      'il a dit que les sommes publiées ne correspondent pas, et la plupart des évaluateurs n’étaient pas d’accord.',
    invalid: () =>
      'il a dit qu’une somme est un modèle invalide, et la plupart des évaluateurs n’étaient pas d’accord.',
    far: (score, reach, median) => `sa note ${score} est à plus de ${reach} de la médiane ${median}.`,
    untested: () => 'aucune somme ne différait assez de son leurre pour tester le comité.',
    failed_decoy: (decoy, score) =>
      `il a été slashé, car il a noté ${decoy} une somme de signe inversé, et ${score} la vraie.`,
    late: () => 'il a agi dans un délai de grâce, ce qui lui coûte les honoraires du tour.',
    slashed: (reason) => `il a été slashé. Raison : ${reasons[reason]}.`,
  },
}
