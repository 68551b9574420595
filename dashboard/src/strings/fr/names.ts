import { pluralIn } from '../../lib/language'
import type * as en from '../names'

const plural = pluralIn('fr')

export const profile: typeof en.profile = {
  title: 'Profil',
  name: 'Nom',
  institution: 'Établissement',
  country: 'Pays',
  site: 'Site web',
  contact: 'Contact',
  means: 'Ce compte a signé ces textes sur lui-même. Seules les lignes confirmées ont été vérifiées. Signé',
  verified: { domain: 'Domaine confirmé', ens: 'Nom ENS confirmé' },
  asked: { domain: 'Un fichier y cite cette adresse. Demandé', ens: 'Le nom mène à cette adresse. Demandé' },
  verifies: { domain: (host) => `${host} confirme cette adresse`, ens: (name) => `ENS confirme ${name}` },
  verify: (account, file) =>
    `Pour confirmer le site, écrivez \`${account}\` sur une ligne de \`${file}\`. Un serveur qui confirme les noms demande peu après chaque publication, puis toutes les heures.`,
  open: 'Définir le profil public…',
  lead: 'Toutes les pages montrent ce nom à côté de votre adresse. Votre wallet le signe, et aucune transaction n’est envoyée. Laissez un champ vide pour ne pas l’afficher.',
  hints: {
    name: '60 caractères au plus, dans une seule écriture',
    institution: '100 caractères au plus, dans une seule écriture',
    country: 'deux lettres, par exemple DE',
    site: 'https://…',
    contact: 'une adresse e-mail',
  },
  sign: 'Signer et publier',
  signing: 'Votre wallet demande une signature…',
  done: 'Le profil est publié.',
  contract: 'Ce compte est un contrat. Un profil demande la signature de la propre clé d’un compte.',
}

export const search: typeof en.search = {
  title: 'Recherche',
  lead: 'Une adresse ou son début, un nom, le numéro d’une tâche ou d’un ensemble, ou l’empreinte d’une transaction.',
  label: 'Rechercher',
  none: 'Rien n’a été trouvé.',
  found: (many) => (many === 20 ? 'Les 20 premiers résultats' : `${many} ${plural(many, 'résultat', 'résultats')}`),
  transaction: 'Transaction',
  ofAccount: 'un événement de',
  with: 'avec',
}
