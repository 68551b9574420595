import type * as en from '../compare'

export const compare: typeof en.compare = {
  title: 'Tâches côte à côte',
  lead: 'Chaque graphique montre les tâches d’une métrique. Des tâches sur d’autres lignes peuvent être plus faciles ou plus difficiles.',
  choose: 'Choisissez deux à quatre tâches dans la liste des tâches.',
  toList: 'Vers la liste des tâches',
  table: 'Chiffres de chaque tâche',
  start: 'Au début',
  now: 'Maintenant',
  spent: 'Dépensé de la cagnotte',
  noNoise: 'sans bruit',
  noFigures: 'Aucune tâche ici n’a de chiffres mesurés de deux tours.',
}
