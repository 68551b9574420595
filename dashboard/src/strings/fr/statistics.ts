import { pluralIn } from '../../lib/language'
import type * as en from '../statistics'

const plural = pluralIn('fr')

export const statistics: typeof en.statistics = {
  title: 'Les lignes de tous les hôpitaux ensemble',
  means: (hospitals) =>
    plural(
      hospitals,
      'Un seul hôpital a donné des comptes au tour 0, donc ils portent sur ses lignes seules.',
      `Le tour 0 a compté ceci sur ${hospitals} hôpitaux. Chaque chiffre est une somme de la cohorte, jamais d’un seul hôpital. Chacun peut le calculer à partir de la somme publiée.`,
    ),
  things: {
    rows: 'Lignes',
    stays: 'Séjours',
    images: 'Images',
    texts: 'Textes',
  },
  hospitals: 'Hôpitaux',
  epsilon: 'ε de ces comptes',
  delta: (delta) => `à δ = ${delta}, pour chaque ligne`,
  noise: 'Bruit dans chaque compte',
  deviation: 'écart type, en plus de ± ; les comptes peuvent être sous 0',
  exact: 'aucun',
  answer: (column) => `${column}, la réponse`,
  known: (values) => `${values} avec une valeur`,
  missing: (share) => `${share} manquants`,
  middle: (mean, half) => `moyenne ${mean} ± ${half}`,
  quartiles: (of, width) => `quartiles ${of} (± ${width})`,
  range: 'Intervalle',
  value: 'Valeur',
  count: 'Nombre',
  share: 'Part',
  to: (low, high) => `${low} à ${high}`,
  leftOut: (columns) => `${columns} colonnes de plus : « consilium operator statistics » les montre.`,
}
