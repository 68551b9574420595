import type * as en from '../earnings'

export const earnings: typeof en.earnings = {
  title: 'Gagné',
  means:
    'Un mois compte les récompenses que vous y avez réclamées, en UTC. Les slashes sont dans la valeur du stake, pas ici. L’export contient toutes les entrées.',
  month: 'Mois',
  share: 'Comparé',
  unclaimed: 'Acquis, pas encore réclamé',
  inAll: 'Valeur totale',
  inAllMeans: 'Stake, stake en unbonding et récompenses acquises',
  earned: 'Gagné en tout',
  earnedMeans: 'Réclamé, et acquis',
  vesting: 'Pas encore acquis',
  until: 'tout avant le',
  left: (request) => `Temps déjà passé en unbonding par la demande ${request}`,
}

export const restake: typeof en.restake = {
  title: 'Réclamer et redéléguer',
  steps: (amount, node) => [
    `L’étape 1 réclame vos récompenses de ${node} : au moins ${amount} jetons.`,
    `L’étape 2 délègue à nouveau exactement ${amount} jetons à ${node}.`,
  ],
  means:
    'Votre wallet demande trois fois : pour chaque étape, et pour une signature qui approuve ce montant. Les récompenses acquises entre-temps restent dans votre wallet.',
  less: (amount) =>
    `Seuls ${amount} jetons ont été réclamés, car quelqu’un a réclamé avec ce compte entre-temps. Rien n’a été délégué.`,
  stands: (amount) =>
    `L’étape 1 est faite : ${amount} jetons réclamés sont dans votre wallet. Ils ne sont pas délégués.`,
  goOn: 'Les déléguer maintenant',
  keep: 'Les garder',
}

export const pick: typeof en.pick = {
  none: 'Choisissez un nœud',
  other: 'Une autre adresse…',
  address: 'Adresse du nœud',
  rate: (rate) => `${rate} en 30 jours`,
  option: (node, rate, commission) => `${node} : ${rate}, commission ${commission}`,
}
