import { formatFixed } from '../../lib/amounts'
import { pluralIn } from '../../lib/language'
import type * as en from '../verify'

const plural = pluralIn('fr')

export const verify: typeof en.verify = {
  steps: 'Étapes',
  state: { holds: 'correct', fails: 'ÉCHEC', waits: 'pas encore', skipped: 'non vérifié', running: 'en cours…' },
  mark: { holds: '✓', fails: '✗', waits: '…', skipped: '–', running: '›' },
  node: 'Nœud de la chaîne',
  nodeOfSite: (host) => `le nœud que ce site nomme (${host})`,
  nodeOfWallet: (name) => `le nœud de votre wallet (${name})`,
  wallet: 'dans le navigateur',
  again: 'Vérifier à nouveau',
  noNode:
    'Ce site ne nomme aucun nœud de la chaîne, et le navigateur n’a pas de wallet qui en ait un. Connectez un wallet, ou utilisez la ligne de commande ci-dessous.',
  asking: 'Lecture du dossier du tour sur la chaîne',
  verdict: {
    running: 'Vérification…',
    holds: 'Toutes les vérifications sont correctes.',
    unchecked: 'Invérifiable : cela ne dit rien du tour, ni en bien ni en mal. Voyez les étapes.',
    partly: 'Aucune vérification n’échoue, mais certaines n’ont pas pu être faites. Voyez les étapes.',
    fails: 'Une vérification ÉCHOUE. Ne vous fiez pas à ce tour avant d’en connaître la raison.',
  },
  took: (seconds) => `Cela a pris ${formatFixed(seconds, 1)} s.`,
  not: 'Ces vérifications ne prouvent pas comment les hôpitaux ont entraîné, ni que les notes et les paiements sont justes. Elles se fient au nœud pour l’état de la chaîne. Elles se fient à ce site pour les adresses des contrats et pour le code des vérifications. Pour la vérification complète, exécutez ceci sur votre propre machine :',
  command: (task, round) => `consilium verify ${task} ${round}`,

  chain: 'Le nœud est sur la chaîne et a les contrats',
  chainHolds: (id, contract, node) =>
    `Le nœud est ${node}, sur la chaîne ${id}, avec du code à ${contract}. Comparez cette adresse avec celle d’une autre source.`,
  wrongChain: (given, wanted) =>
    `Le nœud est sur la chaîne ${given}, mais les contrats sont sur la chaîne ${wanted}. Changez le réseau du wallet.`,
  noCode: (contract) => `Il n’y a pas de contrat à ${contract} sur cette chaîne.`,
  unreachable: (node, why) =>
    `Ceci n’a pas pu être demandé à ${node} : ${why}. Choisissez un autre nœud, ou réessayez plus tard.`,

  record: 'Le dossier du tour est complet',
  recordHolds: (events, block, hospitals, survivors) =>
    `Lu dans ${events} événements, et dans le contrat au bloc ${block} : hôpitaux engagés : ${hospitals} ; dans les sommes : ${survivors}.`,
  recordUnread: (why) => `Le dossier n’a pas pu être lu, donc rien n’y a été vérifié : ${why}`,
  noAnswer: 'le nœud ne répond pas',
  code: (code) => `le nœud signale une erreur (code ${code})`,
  manyQueries: (most) =>
    `le nœud répond pour si peu de blocs à la fois que ${most} requêtes ne suffisent pas. Utilisez un autre nœud.`,
  noTask: (task) => `Le contrat n’a pas de tâche ${task}.`,
  notBegun: 'Ce tour n’a pas commencé.',
  notFixed: 'Les survivants ne sont pas encore fixés.',
  noPoints: (hospital, given, wanted) =>
    `Les événements contiennent ${given} engagements de ${hospital}. Une somme de ${wanted} blobs en demande ${wanted}.`,
  notCommitted: (hospital) => `${hospital} est dans les sommes, mais n’a pas d’engagement dans le contrat.`,
  void: 'Le tour est nul, donc il ne change pas le modèle.',
  noCohorts: 'Aucune cohorte de ce tour n’a de somme.',

  decoys: 'Les sommes de signe inversé étaient fixées avant la publication',
  decoysHolds: 'La graine correspond à son engagement, et donne les mêmes sommes de signe inversé que la chaîne.',
  decoysWait: 'L’agrégateur les divulgue après les révélations.',
  decoysUnset: 'L’agrégateur ne s’est pas encore engagé sur elles.',
  noSeed:
    'Aucune transaction vers le contrat ne montre la graine, car un autre contrat l’a transmise. Seul le contrat l’a vérifiée.',
  manyBlocks: (blocks) =>
    `La graine est dans l’un de ${blocks} blocs, trop nombreux pour une page. Seul le contrat l’a vérifiée.`,
  flippedWrong: (cohort, onChain) =>
    `La cohorte ${cohort} ${onChain ? 'est' : 'n’est pas'} de signe inversé sur la chaîne, mais ${onChain ? 'ne l’est pas' : 'l’est'} d’après la graine.`,

  negatedDelta: 'Le delta opposé des sommes de signe inversé',
  negatedDeltaUnused: 'Aucune somme de ce tour n’était de signe inversé, donc il n’y a pas de delta opposé.',
  negatedDeltaFirst: 'Le premier tour n’a pas de tour avant lui, et son delta opposé est zéro.',
  negatedDeltaWrong: (blob) => `Blob ${blob} : le delta opposé ne découle pas des tours précédents.`,
  negatedDeltaHolds: (rounds) =>
    `Il a été dérivé à nouveau de toutes les sommes ${plural(rounds, 'du tour précédent', `des ${rounds} tours précédents`)}. Chaque somme a l’empreinte que détient le contrat.`,
  negatedDeltaReading: (round, last) => `Lecture des sommes du tour ${round} sur ${last}.`,
  negatedDeltaBeyond:
    'Il correspond. Mais un hôpital a utilisé des voies au-delà des nombres d’une mise à jour, et seul le serveur dit combien il y a de nombres. La ligne de commande le dérive du fichier de tâche.',
  negatedDeltaLater:
    'L’agrégateur s’est engagé sur lui avant la publication. Il y a trop de tours antérieurs à lire ici. Le comité l’a vérifié, et la ligne de commande peut le vérifier à nouveau.',
  inRound: (round, cohort, what) => `Tour ${round}, cohorte ${cohort} : ${what}`,

  sum: (cohort) => `Cohorte ${cohort} : les engagements s’additionnent en la somme du contrat`,
  sumHolds: (survivors, weight, blobs) =>
    `Les engagements de ${survivors} ${plural(survivors, 'hôpital', 'hôpitaux')} ont les empreintes données d’avance. D’un poids total de ${weight}, ils donnent ${plural(blobs, 'son empreinte', `les empreintes de ses ${blobs} blobs`)}.`,
  sumFlipped: 'Elle a été publiée de signe inversé, pour tester le comité.',
  sumWaits: (blob) => `Blob ${blob} : le contrat ne l’a pas encore additionné.`,
  sumUndisclosed: (blob) =>
    `Blob ${blob} : ceci ne peut être comparé avant que l’agrégateur divulgue quelles sommes sont de signe inversé.`,
  sumUnshown: (blob) =>
    `Blob ${blob} : aucune transaction vers le contrat ne montre ses facteurs d’aveuglement, et sans eux toute somme correspond. Seul le contrat l’a vérifié.`,
  sumDiffers: (blob, held, given) =>
    `Blob ${blob} : le contrat détient ${held}, mais les engagements des survivants donnent ${given}.`,
  eventDiffers: (blob, held, event) =>
    `Blob ${blob} : le contrat détient ${held}, mais l’événement de la publication dit ${event}.`,
  pointUnshown: (blob, hospital) => `Blob ${blob} : aucun événement ne montre l’engagement de ${hospital}.`,
  pointDiffers: (blob, hospital) =>
    `Blob ${blob} : l’engagement montré de ${hospital} n’a pas l’empreinte à laquelle il s’est engagé.`,
  dropped: (cohort) => `La cohorte ${cohort} n’a pas de somme : l’agrégateur l’a abandonnée.`,
  malformed: (why) => `Les événements contiennent un engagement invalide : ${why}`,
  sums: 'Les sommes',
  crash: 'Les vérifications elles-mêmes',
  noWorker: 'Le navigateur n’a pas pu les démarrer.',

  blob: (cohort) => `Cohorte ${cohort} : les blobs publiés sont cette somme`,
  blobHolds: (blobs) =>
    plural(
      blobs,
      'Le blob a été récupéré et son engagement recalculé, qui donne la même empreinte.',
      `${blobs} blobs ont été récupérés et leurs engagements recalculés, qui donnent les mêmes empreintes.`,
    ),
  blobWaits: (blob) => `Le blob ${blob} n’est pas encore publié.`,
  blobMissing: (blob, hash) => `Blob ${blob} : ce miroir n’a pas ${hash}.`,
  blobUnreachable: (blob, why) => `Blob ${blob} : le miroir ne répond pas : ${why}`,
  blobLength: (blob, bytes) => `Blob ${blob} : il a ${bytes} octets, et un blob en a 131072.`,
  blobScalar: (blob, at) =>
    `Blob ${blob} : ce n’est pas un blob, car l’élément ${at} n’est pas inférieur à l’ordre du groupe.`,
  blobDiffers: (blob, held, given) =>
    `Blob ${blob} : le contrat détient ${held}, mais le blob du miroir donne l’engagement ${given}. Il est endommagé ou a été falsifié.`,
  ceremony: 'Les points de la cérémonie KZG d’Ethereum',
  ceremonyUnread: (why) => `Ils n’ont pas pu être chargés depuis ce site : ${why}`,
  ceremonyFails: (why) => `Ce site donne d’autres points : ${why}`,
  otherPoints: 'les points ne sont pas ceux de la cérémonie d’Ethereum : leur SHA-256 diffère',
  notPoint: (raw) => `${raw} n’est pas un point de G1 de BLS12-381`,
  ceremonyHolds: '4096 points, avec le SHA-256 de la cérémonie.',
}
