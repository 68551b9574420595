import type * as en from '../desk'

export const desk: typeof en.desk = {
  title: 'Mon nœud',
  lead: 'Devoirs, stake et gains de votre compte comme hôpital, évaluateur ou agrégateur.',
  own: 'Stake propre',
  ownMeans: 'comme nœud, dans tous les rôles',
  claimable: 'Récompenses acquises',
  toPortfolio: 'Réclamer dans le portefeuille',
  next: 'Prochain devoir',
  noDuty: 'Aucun pour l’instant',
  alive: (role) => `${role} : dernier devoir`,
  answered: 'Rempli',
  missed: 'Manqué',
  noneDue: 'Aucun encore dû',
  lastAct: 'dernier acte sur la chaîne',
  noNode: 'Ce compte n’est pas encore un nœud. Enregistrez-le ci-dessous.',
  duties: 'À faire',
  dutiesMeans:
    'Le logiciel du nœud fait tout cela de lui-même. Vérifiez le nœud si un devoir est encore ici peu avant son échéance.',
  nothingToDo: 'Rien à faire pour l’instant.',
  noApi: 'L’API ne répond pas, donc les devoirs, les tâches et les paiements manquent. Le stake est lu sur la chaîne.',
  overdue: 'trop tard : chacun peut maintenant terminer la phase',
  deed: {
    commit: 'Entraîner et s’engager sur la mise à jour',
    handOver: 'Envoyer la mise à jour à l’agrégateur',
    unmask: 'Aider à retirer les masques de la somme',
    submitEvidence: 'Apporter des preuves dans le litige',
    score: 'Noter les sommes, si votre clé tire un siège',
    reveal: 'Révéler les notes',
    fixSurvivors: 'Fixer les survivants',
    publish: 'Publier les sommes',
    nameCheaters: 'Nommer le tricheur dans le litige',
    discloseDecoys: 'Divulguer les leurres, et régler',
  },
  without: {
    commit: 'aucune récompense de ce tour',
    handOver: 'aucune récompense de ce tour non plus',
    unmask: 'votre cohorte peut rester sans somme, et donc sans récompense',
    submitEvidence: 'si l’agrégateur vous nomme tricheur et que le comité est d’accord',
    score: 'aucune récompense de ce tour',
    reveal: 'aucune récompense de ce tour non plus',
    fixSurvivors: 'et le tour est nul',
    publish: 'et le tour est nul',
    nameCheaters: 'et le tour est nul',
    discloseDecoys: 'et le tour est nul',
  },
  withoutStatistics: 'ce tour ne paie pas de récompenses, mais la tâche se termine si le tour est nul',
  slash: (percent, tokens) => `${tokens} jetons, au plus ${percent} de la caution`,
  amounts: {
    active: 'Stake de vous et de vos délégateurs',
    own: 'Votre propre part',
    free: 'Libre pour de nouvelles cautions',
    locked: 'Bloqué dans des cautions',
    unbonding: 'En unbonding',
  },
  commission: 'Commission',
  key: 'Clé d’évaluateur',
  keyThere: 'enregistrée',
  keyMissing: 'non enregistrée : cet évaluateur ne peut rejoindre aucune tâche',
  page: 'Page publique de ce nœud',
  undelegate: 'Retirer la délégation dans le portefeuille',
  more: 'Ajouter au stake, en jetons',
  addStake: 'Ajouter du stake',
  addTwoSteps:
    'Cela demande deux transactions : l’approbation, puis le stake. Le stake garantit de nouvelles cautions, et les slashes des cautions actuelles peuvent aussi l’atteindre.',
  newCommission: 'Commission, en pour cent',
  setCommission: 'Fixer la commission',
  commissionMeans: (after) =>
    `Une commission plus basse vaut aussitôt. Une plus haute vaut après la période d’unbonding (${after}), pour que les délégateurs puissent partir avant.`,
  notPercent: 'Ce n’est pas une commission. Saisissez un nombre de 0 à 100, avec au plus deux décimales.',
  become: 'Devenir un nœud',
  becomeMeans: {
    hospital:
      'Un hôpital entraîne sur des données qui ne le quittent jamais. Il gagne des récompenses quand ses mises à jour améliorent le modèle. Chaque tâche bloque une partie du stake comme caution. Une mise à jour manquante, fausse ou nuisible coûte une partie de la caution.',
    voter:
      'Un évaluateur note les sommes sur des lignes réservées, et gagne des récompenses pour des notes proches de la médiane. Chaque tâche bloque une partie du stake comme caution. Des notes non révélées, ou qui échouent à un test, coûtent une partie de la caution.',
    aggregator:
      'Un agrégateur collecte les mises à jour, publie leurs sommes et gagne des honoraires. Chaque tâche bloque une partie du stake comme caution. Des sommes manquantes ou fausses coûtent une partie de la caution.',
  },
  role: 'Rôle',
  amount: 'Stake, en jetons',
  register: 'Enregistrer',
  registerMeans:
    'Le compte garde ce rôle pour toujours. Vous pouvez ajouter du stake plus tard. Avec du stake, cela demande deux transactions : l’approbation, puis l’enregistrement.',
  command: {
    hospital: {
      title: 'Clés et inscription aux tâches',
      means:
        'La machine de l’hôpital crée elle-même ses clés de transport et de chiffrement, car elles ne doivent pas être dans un navigateur. Elle les enregistre quand elle rejoint une tâche. Sur cette machine, exécutez :',
      command: 'consilium hospital init',
    },
    voter: {
      title: 'La clé qui tire les sièges',
      means:
        'Cette clé est dérivée du fichier de clé de l’évaluateur, et signe une preuve lors de son enregistrement. Un wallet ne peut faire ni l’un ni l’autre. Sur la machine qui a le fichier de clé de ce compte, exécutez :',
      command: 'consilium voter register',
    },
    aggregator: {
      title: 'Le faire tourner',
      means:
        'Le serveur de l’agrégateur rejoint les tâches qui le nomment. Il a besoin du fichier de clé de ce compte. Sur sa machine, exécutez :',
      command: 'consilium server run --config node.toml',
    },
  },
  tasks: 'Mes tâches',
  noTasks: 'Ce compte n’a rejoint aucune tâche.',
  someTasks: (n) => `Voici les ${n} dernières tâches de chaque rôle. La page publique du nœud les a toutes.`,
  release: 'Libérer',
  releaseOf: (task) => `Libérer la caution de la tâche ${task}`,
  payments: 'Mes récompenses et slashes',
  noPayments: 'Ce compte n’a encore ni récompenses ni slashes.',
}
