import { pluralIn } from '../../lib/language'
import type * as en from '../question'

const plural = pluralIn('de')
const list: typeof en.question.list = (names, more) => names.join(', ') + (more > 0 ? ` und ${more} weitere` : '')
const images: Readonly<Record<string, string>> = {
  CR: 'ein Röntgenbild',
  CT: 'ein CT-Bild',
  DX: 'ein Röntgenbild',
  MG: 'ein Mammogramm',
  MR: 'ein MRT-Bild',
  PT: 'ein PET-Bild',
  US: 'ein Ultraschallbild',
}

export const question: typeof en.question = {
  list,
  source: {
    table: (n) => plural(n, 'eine Spalte einer Tabelle', `${n} Spalten einer Tabelle`),
    text: () => 'ein Text',
    corpus: () => 'ein Text',
    images: (_, modality) => images[modality ?? ''] ?? 'ein Bild',
    series: (n) => `eine Zeitreihe mit ${n} ${plural(n, 'Variable', 'Variablen')}`,
  },
  classification: (answers, source, isMany) => `Welche Klasse (${answers}) ${isMany ? 'zeigen' : 'zeigt'} ${source}?`,
  regression: (target, unit, source) => `Wie groß ist ${target}${unit && `, in ${unit}`}? (Eingabe: ${source})`,
  survival: (target, upTo, source) => `Wie lange dauert es bis ${target}, bis zu ${upTo}? (Eingabe: ${source})`,
  multilabel: (answers, source, isMany) =>
    `Welche Klassen (${answers}), jeweils ja oder nein, ${isMany ? 'zeigen' : 'zeigt'} ${source}?`,
  segmentation: (answers, source) => `Welche Pixel zeigen ${answers}? (Eingabe: ${source})`,
  nextToken: (source) => `Welches Token kommt als Nächstes? (Eingabe: ${source})`,
  unknown: 'Der Server hat keine gültige Aufgabendatei und kann die Frage deshalb nicht nennen.',
}
