import { formatWhole } from '../../lib/amounts'
import type * as en from '../report'

export const report: typeof en.report = {
  title: 'Ce que vaut le modèle',
  means: (round) =>
    `Après le tour ${round}, sur des lignes que le modèle n’a jamais vues. Entre parenthèses : intervalles à 95 %. La chaîne ne peut pas prouver ces chiffres, car les lignes ne sont pas publiques.`,
  noRows: 'L’opérateur ne montre aucun chiffre sur ses propres lignes étiquetées.',
  rows: (rows) => `Sur ${formatWhole(rows)} lignes étiquetées de l’opérateur.`,
  sites: 'Par centre',
  alone: (metric) => `Entraîné seul : ${metric}`,
  site: 'Centre',
  all: 'tous',
  nodes: 'Les hôpitaux et évaluateurs de la tâche, chacun sur ses propres lignes réservées',
  nodesMean:
    'Le compte d’un nœud a signé ses chiffres ; ce serveur a vérifié les signatures. Les chiffres sont arrondis, et les lignes sont arrondies vers le bas à la dizaine.',
  node: 'Nœud',
  notShared: 'non partagé',
  signed: 'signé par',
  start: (metric) => `Avant l’entraînement : ${metric}`,
  subgroups: 'Sous-groupes',
  subgroup: 'Sous-groupe',
  whose: 'Lignes de',
  operator: 'l’opérateur',
  calibration: 'Calibration',
  calibrationMeans: 'De toutes les lignes avec à peu près cette probabilité prédite, la part qui est de la classe.',
  predicted: 'probabilité prédite',
  observed: 'part observée',
  perfect: 'comme prédit',
  low: 'intervalle, de',
  high: 'intervalle, à',
  noCurve: 'Trop peu de lignes pour une courbe.',
  importance: (whose) => `Importance des colonnes, lignes de : ${whose}`,
  importanceMeans: (metric) =>
    `Perte de « ${metric} » quand les valeurs de la colonne sont distribuées à d’autres lignes : la moyenne de dix distributions. Le trait fin va du minimum au maximum.`,
  column: 'Colonne',
  loss: 'Perte',
  range: 'Du minimum au maximum',
  to: (low, high) => `${low} à ${high}`,
}
