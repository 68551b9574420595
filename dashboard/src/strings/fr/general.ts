import { point } from '../../lib/amounts'
import { pluralIn } from '../../lib/language'
import type * as en from '../general'

const plural = pluralIn('fr')

export const name = 'Consilium'
export const skip = 'Aller au contenu'
export const theme: typeof en.theme = { label: 'Thème', system: 'Système', light: 'Clair', dark: 'Sombre' }
export const language = 'Langue'
export const times: typeof en.times = {
  day: 'j',
  hour: 'h',
  minute: 'min',
  second: 's',
  now: 'maintenant',
  ahead: (duration) => `dans ${duration}`,
  ago: (duration) => `il y a ${duration}`,
}
export const nav: typeof en.nav = {
  overview: 'Aperçu',
  tasks: 'Tâches',
  market: 'Marché',
  nodes: 'Nœuds',
  portfolio: 'Portefeuille',
  propose: 'Proposer',
  desk: 'Mon nœud',
  wallet: 'Wallet',
  search: 'Recherche',
  label: 'Navigation principale',
  crumbs: 'Chemin vers cette page',
}
export const live: typeof en.live = {
  connecting: 'connexion…',
  live: 'en direct',
  lost: 'pas d’événements en direct : nouvel essai',
}
export const footer: typeof en.footer = (block, behind) =>
  block === null
    ? 'Aucun bloc n’est encore indexé.'
    : `Complet jusqu’au bloc ${block}${behind ? `, ${behind} ${plural(behind, 'bloc', 'blocs')} derrière la chaîne` : ''}. Vous pouvez vérifier chaque tour vous-même.`
export const loading = 'Chargement'
export const unread = 'pas encore connu'
export const none = 'aucun'
export const more = 'Afficher plus'
export const moreRows: typeof en.moreRows = (left) => `Afficher plus (encore ${left})`
export const retry = 'Réessayer'
export const cancel = 'Annuler'
export const command = 'Commande'
export const copy = 'Copier'
export const copied = 'Copié'
export const explorer = 'Explorateur'
export const tokens = 'jetons'
export const unreachable = 'L’API ne répond pas. Cette page n’est peut-être plus à jour. Elle réessaie d’elle-même.'
export const faulty: typeof en.faulty = (detail) => `Le chargement a échoué : ${detail}`
export const notFound = 'Cette page n’existe pas.'
export const home = 'Vers l’aperçu'
export const crashed = 'Une erreur du tableau de bord a arrêté cette page. Rechargez-la.'
export const tableOf = 'Afficher en tableau'
export const unitBy: typeof en.unitBy = (unit, across) => `${unit}, par ${across.toLowerCase()}`
export const both: typeof en.both = (time, utc) => `${time} (${utc})`
export const notAmount = `Ce n’est pas un montant. Saisissez des chiffres, avec « ${point} » avant les décimales d’un jeton.`
export const overBalance = 'C’est plus que ce que contient votre wallet.'
export const balance = 'Dans votre wallet'
export const amount = 'Montant, en jetons'
export const role: typeof en.role = { hospital: 'Hôpital', voter: 'Évaluateur', aggregator: 'Agrégateur' }
export const roles: typeof en.roles = { hospital: 'Hôpitaux', voter: 'Évaluateurs', aggregator: 'Agrégateurs' }
export const phase: typeof en.phase = {
  none: 'Aucune',
  joining: 'Inscription',
  forming: 'Formation des cohortes',
  committing: 'Engagements',
  uploading: 'Envoi',
  publishing: 'Publication',
  disputing: 'Litige',
  drawing: 'Tirage des sièges',
  scoring: 'Notation',
  revealing: 'Révélation',
  disclosing: 'Divulgation des leurres',
  settling: 'Règlement',
  ended: 'Terminée',
}
export const phaseMeans: typeof en.phaseMeans = {
  none: '',
  joining: 'Les hôpitaux, les évaluateurs et l’agrégateur bloquent leurs cautions.',
  forming: 'La balise répartit les hôpitaux en cohortes.',
  committing: 'Les hôpitaux entraînent, et s’engagent sur leurs mises à jour.',
  uploading: 'Les hôpitaux envoient leurs mises à jour masquées à l’agrégateur.',
  publishing: 'L’agrégateur publie la somme de chaque cohorte. La chaîne la compare aux engagements.',
  disputing: 'Une cohorte n’a pas de somme valide. Le litige trouve le tricheur.',
  drawing: 'La balise tire le comité au sort.',
  scoring: 'Le comité note les sommes sur des données réservées, et s’engage sur les notes.',
  revealing: 'Le comité révèle ses notes.',
  disclosing: 'L’agrégateur divulgue quelles sommes étaient de signe inversé pour tester le comité.',
  settling: 'Le contrat paie les récompenses et prélève les slashes.',
  ended:
    'La tâche est terminée. L’opérateur récupère la paie des tours qui n’ont pas été joués. La paie que des tours n’ont pas gagnée est brûlée.',
}
export const outcome: typeof en.outcome = { pending: 'En cours', settled: 'Réglé', void: 'Nul' }
export const voidReason: typeof en.voidReason = {
  none: '',
  too_few_hospitals: 'trop peu d’hôpitaux se sont engagés',
  survivors_not_fixed: 'l’agrégateur n’a pas fixé les survivants',
  not_published: 'l’agrégateur n’a pas publié les sommes',
  too_few_scores: 'trop peu de membres du comité ont révélé',
  not_disclosed: 'l’agrégateur n’a pas divulgué ses leurres',
  mismatched: 'les sommes publiées diffèrent des sommes notées par les évaluateurs',
  no_sums: 'aucune cohorte n’avait de somme valide',
  no_randomness: 'la balise n’a donné aucune valeur pendant une semaine, donc la tâche s’est terminée',
}
export const reason: typeof en.reason = {
  harmful_cohort: 'sa cohorte a dégradé le modèle',
  withheld_upload: 'n’a pas envoyé la mise à jour sur laquelle il s’était engagé',
  false_upload: 'a envoyé une mise à jour qui diffère de son engagement',
  not_revealed: 'n’a pas révélé ses notes',
  failed_decoy: 'a noté comme vraie une somme de signe inversé',
  not_published: 'n’a pas publié les sommes',
  not_disclosed: 'n’a pas divulgué quelles sommes étaient de signe inversé',
  mismatched: 'la plupart des évaluateurs disent qu’il a publié des sommes fausses ou nommé les mauvais hôpitaux',
}
export const kind: typeof en.kind = {
  reward: 'Récompense',
  slash: 'Slash',
  bounty: 'Prime',
  refund: 'Remboursement',
  delegated: 'Délégué',
  unbonding_started: 'Unbonding commencé',
  unbonded: 'Retiré',
  claimed: 'Réclamé',
}
