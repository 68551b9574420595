import type * as en from '../forecast'

export const forecast: typeof en.forecast = {
  title: 'Prévision à partir de vos propres lignes',
  means: 'Simulez la tâche sur votre propre machine, et ouvrez ici le résultat. Rien n’en quitte ce navigateur.',
  command: 'consilium simulate task.toml --table rows.csv --sites COLUMN --output simulated.json',
  file: 'Résultat de la simulation (JSON)',
  pooled: 'Avec toutes les lignes en un lieu',
  rejected: 'Cohortes honnêtes rejetées',
  rejectedMeans: 'de toutes celles qui ont eu une somme',
  slashed: 'Hôpitaux honnêtes slashés',
  slashedMeans: 'fois, dans tous les tours',
  of: (some, all) => `${some} sur ${all}`,
  paid: 'Payé dans tous les tours',
  ofPool: (pool) => `de la cagnotte de ${pool}`,
  most: 'Payé dans le tour le plus cher',
  void: 'Tours nuls',
  absent: 'Engagements manqués',
  unfair:
    'Tous les hôpitaux d’une simulation sont honnêtes. Baissez accept_floor et harmful_below, ou demandez des évaluateurs avec plus de lignes.',
  otherTask: (sections) =>
    `Cette simulation est celle d’une autre tâche. Ces parties diffèrent : ${sections.join(', ')}. Simulez le fichier tel qu’il est maintenant.`,
  refused: {
    tooLarge: (most) => `Le fichier dépasse ${most}, donc il n’est pas lu.`,
    noJson: 'Le fichier n’est pas du JSON.',
    foreign:
      'Le fichier n’est pas un résultat de consilium simulate, ou une version plus ancienne l’a écrit. Écrivez-le à nouveau avec --output.',
    grid: 'Le fichier est celui d’une grille. Simulez la tâche sans --grid.',
    malformed: (field) => `Le fichier est endommagé : ${field} manque ou est invalide.`,
  },
}
