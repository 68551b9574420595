import { pluralIn } from '../../lib/language'
import type * as en from '../told'

const plural = pluralIn('fr')

export const told: typeof en.told = {
  title: 'Alertes',
  lead: 'Vous pouvez être averti des événements qui coûtent de l’argent dans les tâches et les nœuds que vous suivez : slashes, échéances manquées, tours sans paie, tâches qui se terminent, commissions plus hautes, stake arrivé à échéance.',
  watch: 'Suivre',
  watched: 'Ne plus suivre',
  full: 'La liste est pleine : retirez d’abord une entrée.',
  list: 'Ce que vous suivez',
  listMeans: 'La liste est dans ce navigateur. Au plus 50 tâches et 50 nœuds.',
  empty: 'Rien encore : choisissez « Suivre » sur la page d’une tâche ou d’un nœud.',
  remove: 'Retirer',
  here: 'Dans ce navigateur',
  hereMeans:
    'Les notifications arrivent tant qu’une page de ce tableau de bord est ouverte, aussi dans un autre onglet. Cela ne demande pas de compte, et n’envoie rien à personne. D’un nœud, seuls les événements qui le nomment arrivent ici ; un serveur signale aussi ceux de ses tâches.',
  turnOn: 'Afficher les notifications',
  turnOff: 'Ne plus en afficher',
  isOn: 'Les notifications sont affichées.',
  denied: 'Le navigateur n’autorise pas les notifications de ce site. Changez cela dans ses réglages.',
  unsupported: 'Ce navigateur n’a pas de notifications pour cette page. Il faut HTTPS.',
  away: 'Pendant votre absence',
  awayMeans:
    'Ce serveur peut envoyer les événements à un webhook ou à une adresse e-mail. Votre wallet se connecte, et aucune transaction n’est envoyée. Vous êtes aussi averti pour votre propre compte.',
  open: 'Définir un webhook ou une adresse e-mail…',
  signIn: 'Se connecter',
  signing: 'Votre wallet demande une signature…',
  statement: 'Connexion pour recevoir les alertes. Cela ne paie rien.',
  off: 'Ce serveur n’envoie rien : son opérateur ne l’a pas configuré.',
  kind: { https: 'Webhook', mailto: 'Courriel' },
  hint: { https: 'https://…', mailto: 'name@example.org' },
  none: 'aucun',
  state: {
    asked: {
      https: 'attend la réponse au défi',
      mailto: 'attend l’ouverture du lien dans le courriel',
    },
    confirmed: { https: 'est averti', mailto: 'est avertie' },
    failed: {
      https: 'ne répond pas : définissez-le à nouveau',
      mailto: 'refuse le courrier : définissez-la à nouveau',
    },
  },
  notOffered: 'Ce serveur n’en envoie pas.',
  set: 'Définir',
  forget: 'Oublier',
  secret: 'Le secret du webhook, affiché une fois. Ses messages sont signés avec lui, selon Standard Webhooks :',
  isSame: 'Le serveur a la même liste.',
  differs: 'Le serveur a une autre liste.',
  sendList: 'Envoyer la liste de ce navigateur',
  takeList: 'Prendre la liste du serveur',
  confirm: 'Confirmer l’adresse e-mail',
  confirmMeans: 'Cette adresse est alors avertie des événements qu’un compte suit.',
  confirmed: 'L’adresse est confirmée.',
  stop: 'Arrêter les courriels',
  stopMeans: 'L’adresse est alors oubliée.',
  stopped: 'Plus aucun courriel n’arrive.',
  of: {
    slash: (account, tokens, why) => `${account} a perdu ${tokens} jetons : ${why}`,
    missed: (account) => `${account} ne s’est pas engagé à temps, et passe son tour`,
    void: (why) => `Le tour est nul et ne paie rien : ${why}`,
    rejected: (rejected, of) =>
      `${rejected} ${plural(rejected, 'cohorte rejetée', 'cohortes rejetées')} sur ${of}, sans gain`,
    stopped: 'L’opérateur a arrêté la tâche après ce tour',
    ended: 'La tâche est terminée',
    wiped: (account) => `Un slash a pris tout le stake de ${account}`,
    address: (account, to, at) => `Le stake et les récompenses de ${account} sont versés à ${to} à partir du ${at}`,
    commission: (account, percent, at) => `${account} monte sa commission à ${percent} le ${at}`,
  },
}
