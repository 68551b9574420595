import { pluralIn } from '../../lib/language'
import type * as en from '../statistics'

const plural = pluralIn('es')

export const statistics: typeof en.statistics = {
  title: 'Las filas de todos los hospitales juntas',
  means: (hospitals) =>
    plural(
      hospitals,
      'Solo un hospital dio recuentos en la ronda 0, así que son únicamente de sus filas.',
      `La ronda 0 contó esto en ${hospitals} hospitales. Cada cifra es una suma de la cohorte, nunca de un solo hospital. Cualquiera puede calcularla con la suma publicada.`,
    ),
  things: {
    rows: 'Filas',
    stays: 'Estancias',
    images: 'Imágenes',
    texts: 'Textos',
  },
  hospitals: 'Hospitales',
  epsilon: 'ε de estos recuentos',
  delta: (delta) => `con δ = ${delta}, para cada fila`,
  noise: 'Ruido en cada recuento',
  deviation: 'desviación estándar, además de ±; los recuentos pueden estar por debajo de 0',
  exact: 'ninguno',
  answer: (column) => `${column}, la respuesta`,
  known: (values) => `${values} con valor`,
  missing: (share) => `falta el ${share}`,
  middle: (mean, half) => `media ${mean} ± ${half}`,
  quartiles: (of, width) => `cuartiles ${of} (± ${width})`,
  range: 'Intervalo',
  value: 'Valor',
  count: 'Recuento',
  share: 'Parte',
  to: (low, high) => `de ${low} a ${high}`,
  leftOut: (columns) => `${columns} columnas más: «consilium operator statistics» las muestra.`,
}
