import { pluralIn } from '../../lib/language'
import type * as en from '../question'

const plural = pluralIn('es')
const list: typeof en.question.list = (names, more) => names.join(', ') + (more > 0 ? ` y ${more} más` : '')
const images: Readonly<Record<string, string>> = {
  CR: 'una radiografía',
  CT: 'una imagen de TC',
  DX: 'una radiografía',
  MG: 'una mamografía',
  MR: 'una imagen de RM',
  PT: 'una imagen de PET',
  US: 'una ecografía',
}

export const question: typeof en.question = {
  list,
  source: {
    table: (n) => plural(n, 'una columna de una tabla', `${n} columnas de una tabla`),
    text: () => 'un texto',
    corpus: () => 'un texto',
    images: (_, modality) => images[modality ?? ''] ?? 'una imagen',
    series: (n) => `una serie de ${n} ${plural(n, 'variable', 'variables')}`,
  },
  classification: (answers, source, isMany) => `¿Qué clase (${answers}) ${isMany ? 'muestran' : 'muestra'} ${source}?`,
  regression: (target, unit, source) => `¿Cuánto es ${target}${unit && `, en ${unit}`}, según ${source}?`,
  survival: (target, upTo, source) => `¿Cuánto tiempo hasta ${target}, como máximo ${upTo}, según ${source}?`,
  multilabel: (answers, source, isMany) =>
    `¿Qué clases (${answers}), cada una sí o no, ${isMany ? 'muestran' : 'muestra'} ${source}?`,
  segmentation: (answers, source) => `¿Qué píxeles de ${source} muestran ${answers}?`,
  nextToken: (source) => `¿Qué token viene a continuación en ${source}?`,
  unknown: 'El servidor no tiene un archivo de tarea válido, así que no puede decir la pregunta.',
}
