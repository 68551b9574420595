import { pluralIn } from '../../lib/language'
import type * as en from '../question'

const plural = pluralIn('fr')
const list: typeof en.question.list = (names, more) => names.join(', ') + (more > 0 ? ` et ${more} de plus` : '')
const images: Readonly<Record<string, string>> = {
  CR: 'une radiographie',
  CT: 'une image TDM',
  DX: 'une radiographie',
  MG: 'une mammographie',
  MR: 'une image IRM',
  PT: 'une image TEP',
  US: 'une échographie',
}

export const question: typeof en.question = {
  list,
  source: {
    table: (n) => plural(n, 'une colonne d’un tableau', `${n} colonnes d’un tableau`),
    text: () => 'un texte',
    corpus: () => 'un texte',
    images: (_, modality) => images[modality ?? ''] ?? 'une image',
    series: (n) => `une série de ${n} ${plural(n, 'variable', 'variables')}`,
  },
  classification: (answers, source, isMany) =>
    `Quelle classe (${answers}) ${isMany ? 'montrent' : 'montre'} ${source} ?`,
  regression: (target, unit, source) => `Combien vaut ${target}${unit && `, en ${unit}`}, d’après ${source} ?`,
  survival: (target, upTo, source) => `Combien de temps jusqu’à ${target}, au plus ${upTo}, d’après ${source} ?`,
  multilabel: (answers, source, isMany) =>
    `Quelles classes (${answers}), chacune oui ou non, ${isMany ? 'montrent' : 'montre'} ${source} ?`,
  segmentation: (answers, source) => `Quels pixels montrent ${answers}, d’après ${source} ?`,
  nextToken: (source) => `Quel token vient ensuite dans ${source} ?`,
  unknown: 'Le serveur n’a pas de fichier de tâche valide, donc il ne peut pas dire la question.',
}
