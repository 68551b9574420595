import type * as en from '../operate'

export const operate: typeof en.operate = {
  title: 'Exploiter',
  means:
    'Le compte qui a proposé cette tâche peut compléter la cagnotte, arrêter la tâche et retirer le remboursement.',
  open: 'Exploiter cette tâche…',
  notYours: 'Seul le compte qui a proposé cette tâche peut l’exploiter :',
  fund: 'Compléter la cagnotte',
  fundMeans:
    'Chaque tour peut alors payer une part égale de plus. Le remboursement contient les parts des tours qui ne sont pas joués. La paie qu’un tour joué ne gagne pas est brûlée.',
  fundOver: 'Tout le monde s’est inscrit, donc la cagnotte est fixée.',
  fundEnded: 'La tâche est terminée, et sa cagnotte aussi.',
  room: (amount) =>
    `La caution de l’agrégateur permet au plus ${amount} de plus : manquer un tour doit coûter à l’agrégateur au moins le double de sa paie pour le tour.`,
  tooMuch: (amount) => `La caution de l’agrégateur est trop petite pour cela. Ajoutez au plus ${amount} jetons.`,
  payRole: 'Un tour paie au plus',
  fundGo: 'Approuver et ajouter',
  stop: 'Arrêter la tâche',
  stopOpen: 'Arrêter…',
  stopJoining:
    'La tâche se termine aussitôt. Chacun peut libérer sa caution, et toute la cagnotte vous est remboursée.',
  stopRunning: (last) =>
    `Le tour actuel est terminé et payé comme d’habitude. Le tour ${last} est le dernier. Ensuite, les parts de la cagnotte pour les tours non joués vous sont remboursées. La paie que les tours joués n’ont pas gagnée est brûlée.`,
  stopForGood: 'C’est irréversible.',
  stopping: (last) => `Vous l’avez arrêtée. Le tour ${last} est le dernier.`,
  stopEnded: 'Elle est terminée.',
  refund: 'Remboursement',
  refundMeans: 'Des cagnottes de toutes vos tâches terminées.',
  refundable: 'À retirer pour vous',
  refundGo: 'Retirer',
  model: 'Le modèle',
  modelMeans:
    'La chaîne et le dépôt d’artefacts définissent le modèle. La ligne de commande le dérive, comme chaque hôpital, et vérifie d’abord chaque tour. Chacun peut le faire.',
  modelSources:
    'deployment.json est le carnet d’adresses des contrats. artifacts est un dossier ou un miroir du dépôt d’artefacts.',
  modelSoFar: 'La tâche n’est pas terminée. Voici donc le modèle après son dernier tour terminé.',
  modelFiles: 'Fichiers du modèle',
  modelFile: {
    'model.safetensors': 'les paramètres',
    'model.json': 'une description des paramètres',
    'model-card.md': 'la fiche du modèle : données, confidentialité, notes',
    'proof.json': 'les vérifications de chaque tour',
    'program.json': 'le programme : le graphe du modèle',
    'program.safetensors': 'les poids que son auteur a donnés au programme',
    'program-frozen.safetensors': 'ses tenseurs qu’aucun hôpital n’entraîne',
    'program-tokenizer.json': 'il fait des tokens avec des textes',
    'model.onnx': 'le modèle seul, pour onnxruntime',
    'model-int8.onnx': 'le même avec des poids de 8 bits, pour les téléphones',
    'report.json': 'ce qu’il vaut : une évaluation, avec les chiffres signés des nœuds',
    'report.html': 'le même en tant que page',
    'report.svg': 'la même chose en image',
  },
  modelAfter: (round, rounds, verified) =>
    `Après le tour ${round} sur ${rounds}. ${verified ? 'Chaque tour a été vérifié quand le modèle a été dérivé.' : 'NON VÉRIFIÉ : certaines vérifications échouent. Voyez la fiche du modèle.'}`,
  modelDoubt:
    'Vous n’avez pas à faire confiance à ce serveur. Pour dériver vous-même le modèle de la chaîne, exécutez :',
  modelNone: 'Aucun tour d’entraînement n’est encore terminé, donc il n’y a pas de modèle.',
}
