import { pluralIn } from '../../lib/language'
import type * as en from '../audit'

const plural = pluralIn('fr')

export const audit: typeof en.audit = {
  title: (task) => `Audit de la tâche ${task}`,
  lead: 'Votre navigateur vérifie tous les tours terminés de cette tâche, l’un après l’autre, d’après la chaîne et les sommes publiées.',
  go: 'Vérifier tous les tours',
  again: 'Tout vérifier à nouveau',
  cancel: 'Arrêter',
  reading: 'Lecture de la tâche sur la chaîne…',
  plan: (rounds, blobs) =>
    `${rounds} ${plural(rounds, 'tour est vérifié', 'tours sont vérifiés')} et ${blobs} ${plural(blobs, 'blob', 'blobs')} de 128 Kio ${plural(blobs, 'est lu', 'sont lus')}.`,
  takes: (duration) =>
    `Cela prend environ ${duration}. Vous pouvez arrêter à tout moment et garder ce qui est vérifié.`,
  left: (duration) => `encore environ ${duration}`,
  doing: (round, step) => `Tour ${round} : ${step}`,
  none: 'Aucun tour de cette tâche n’est encore terminé.',
  progress: 'Tours vérifiés',
  done: (n, of) => `${n} tours vérifiés sur ${of}`,
  rounds: 'Tours',
  verdict: 'Verdict',
  steps: 'Étapes',
  verdicts: { holds: 'correct', fails: 'ÉCHEC', 'could not check': 'invérifiable' },
  allHold: (rounds) => `Toutes les vérifications des ${rounds} tours sont correctes.`,
  someFail: (rounds) =>
    `Une vérification ÉCHOUE dans : ${rounds}. Ne vous fiez pas à cette tâche avant d’en connaître la raison.`,
  someOpen: (rounds) =>
    `Aucune vérification n’échoue, mais toutes n’ont pas pu être faites dans : ${rounds}. Voyez les étapes.`,
  stopped: (left) => `Vous avez arrêté. ${left} tours n’ont pas été vérifiés.`,
  roundsOf: (rounds) => rounds.map((one) => `tour ${one}`).join(', '),
  notTitle: 'Ce qui n’a pas été vérifié',
  notProven: [
    'Le fichier de tâche, et que le contrat fait respecter ses conditions.',
    'Les voies des sommes, les tricheurs des cohortes accusées, le modèle et l’argent : utilisez consilium verify.',
    'Que les hôpitaux ont entraîné honnêtement, sur de vraies données et sur toutes.',
    'Que les notes sont honnêtes : l’acceptation découle des médianes du comité.',
    'Que le nœud rapporte fidèlement sa chaîne, et que ce site nomme les bons contrats : utilisez votre propre nœud.',
    'Que le code de ce site fait ce qu’il dit : comparez ses fichiers avec le code source, ou hébergez-les vous-même.',
  ],
  report: 'Le rapport',
  reportMeans:
    'Un fichier JSON avec tous les verdicts et les empreintes de tout ce qui a été vérifié. Signez-le, et d’autres verront qui l’a fait et que personne ne l’a modifié.',
  download: 'Télécharger le rapport',
  open: 'Le signer…',
  sign: 'Signer le rapport',
  signed: 'Signé par',
  signing: 'Confirmez dans votre wallet. Cela ne coûte rien.',
}
