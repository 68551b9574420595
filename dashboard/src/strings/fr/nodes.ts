import { pluralIn } from '../../lib/language'
import type * as en from '../nodes'

const plural = pluralIn('fr')

export const nodes: typeof en.nodes = {
  title: 'Nœuds',
  role: 'Rôle',
  days: 'Rendement des derniers',
  daysOf: (n) => `${n} jours`,
  sort: 'Ordre',
  none: 'Aucun nœud n’a ce rôle.',
  yieldMeans:
    'Le rendement est le gain d’un jeton délégué pendant ce temps, après commission et slashes. Ce n’est pas un taux annuel. Les rendements futurs peuvent être plus bas, ou des pertes. Les nouveaux nœuds n’en montrent pas et viennent en dernier.',
  compare: 'Comparer',
  compareOf: (account) => `Comparer ${account}`,
  compareGo: (n) => `Comparer ${n} nœuds`,
  compareMost: 'Choisissez deux à quatre nœuds à comparer.',
  bySort: {
    yield: 'Rendement le plus haut',
    assets: 'Le plus de stake',
    commission: 'Commission la plus basse',
    rewarded: 'Le plus de récompenses',
    burnt: 'Le moins slashé',
  },
}

export const decide: typeof en.decide = {
  title: 'Avant de déléguer',
  rate: (days) => `Rendement, ${days} jours`,
  aYear: (rate) => `${rate} par an, simple, arrondi vers le bas`,
  over: (duration) => `sur ${duration} seulement`,
  soFar: (rate, duration) => `${rate} en ${duration} : trop peu pour un taux`,
  isNew: 'Nouveau',
  noRate: 'nouveau : pas de taux annuel',
  newMeans:
    'Le premier stake a moins de 30 jours, ou moins de 5 tours ont été payés. Aucun rendement n’est donc montré.',
  worst: 'Pire perte',
  all: 'La totalité',
  locked: (part, fault) =>
    `${part} est actuellement dans des cautions. Une seule faute prend jusqu’à ${fault} d’une caution.`,
  slashes: 'Slashes à ce jour',
  never: 'Aucun',
  met: 'Échéances respectées',
  noneDue: 'Aucune encore due',
  metOf: (made, due) => `${made} sur ${due}`,
  inRounds: (n) => plural(n, 'dans son dernier tour', `dans ses ${n} derniers tours`),
  age: 'Âge de son stake',
  unstaked: 'Pas encore de stake',
  paid: (n) => `${n} ${plural(n, 'tour payé', 'tours payés')}`,
  commissionCap: (notice) => `peut monter à 100 %, ${notice} après un préavis`,
  own: 'Stake propre du propriétaire',
  ownPart: (part) => `${part} du stake`,
  unlock: 'Disponible',
  unlockMeans: (day) => `après le retrait de la délégation : le ${day} au plus tôt`,
  period: 'une période d’unbonding',
}

export const compare: typeof en.compare = {
  title: 'Comparer des nœuds',
  lead: 'Les lignes sont les faits pour décider. Les rendements sont passés, après commission et slashes. Les rendements futurs peuvent être plus bas, ou des pertes.',
  decision: 'Fait',
  none: 'Aucun nœud n’est choisi. Choisissez-en deux à quatre dans la liste des nœuds.',
  back: 'Vers la liste des nœuds',
}

export const record: typeof en.record = {
  title: 'Bilan',
  means: (rounds) =>
    `D’après la chaîne, sur les ${rounds} derniers tours terminés de ses tâches. Un siège est secret jusqu’à ce que son évaluateur s’engage sur des notes.`,
  none: 'Aucun tour de ses tâches n’est encore terminé.',
  duty: {
    commit: 'S’engager sur une mise à jour',
    upload: 'Envoyer la mise à jour',
    reveal: 'Révéler les notes',
    fix_survivors: 'Fixer les survivants',
    publish: 'Publier les sommes',
    disclose: 'Divulguer les leurres',
  },
  accepted: { hospital: 'Sommes acceptées', voter: '', aggregator: 'Tours réglés' },
  outOf: (n, all) => `${n} sur ${all}`,
  median: 'Note médiane de ses cohortes',
  allMedian: (score) => `${score} pour toutes les cohortes`,
  seats: 'Sièges occupés',
  distance: 'Distance moyenne à la médiane',
  decoys: 'Leurres distingués',
  lastAct: 'Dernier acte sur la chaîne',
  stake: 'Stake au fil du temps',
  rewards: 'Récompenses et slashes au fil du temps',
}

export const node: typeof en.node = {
  tokens: 'jetons',
  onePeriod: 'Le premier jour n’est pas encore terminé.',
  stake: 'Stake',
  stakeMeans: 'Tous les jetons derrière ce nœud. Un slash prend une part de tous, y compris des jetons en unbonding.',
  free: 'Libre pour de nouvelles cautions',
  next: (bps, when) => `${bps} à partir du ${when}`,
  earned: 'gagné',
  lost: 'perdu par des slashes',
  history: 'Valeur d’une part au fil du temps',
  worthUnit: 'jetons pour une part',
  noHistory: 'Personne n’a encore mis de stake sur ce nœud.',
  flat: 'La valeur n’a jamais changé : aucun slash n’a atteint ce nœud.',
  slashes: 'Slashes',
  noSlashes: 'Jamais slashé.',
  tasks: 'Tâches',
  noTasks: 'Ce nœud n’a rejoint aucune tâche.',
  ranks: 'Arène',
  ranked: (best, firsts, rounds) =>
    best === null
      ? `aucun rang en ${rounds} tours`
      : `meilleur rang ${best} ; premier dans ${firsts} tours sur ${rounds}`,
  delegators: 'Délégateurs',
  noDelegators: 'Seulement le nœud lui-même.',
  paid: 'Tours avec une récompense ou un slash',
  since: 'depuis',
}

export const account: typeof en.account = {
  title: 'Compte',
  delegations: 'Délégations',
  none: 'Ce compte n’a pas de délégations.',
  unbonding: 'Unbonding',
  noUnbonding: 'Rien n’est en unbonding.',
  history: 'Historique',
  noHistory: 'Ce compte n’a pas encore d’historique.',
  csv: 'Télécharger en CSV',
  shares: (n) => `${n} parts`,
  wiped: 'un slash a tout pris',
  look: 'Consulter un compte',
  lookHint: '0x et 40 chiffres hexadécimaux',
  lookBad: 'Ce n’est pas un compte. Un compte est 0x et 40 chiffres hexadécimaux.',
  show: 'Afficher',
}
