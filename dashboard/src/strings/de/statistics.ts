import { pluralIn } from '../../lib/language'
import type * as en from '../statistics'

const plural = pluralIn('de')

export const statistics: typeof en.statistics = {
  title: 'Die Zeilen aller Krankenhäuser zusammen',
  means: (hospitals) =>
    plural(
      hospitals,
      'Nur ein Krankenhaus hat in Runde 0 Zählungen abgegeben, deshalb betreffen sie nur seine Zeilen.',
      `Runde 0 hat dies über ${hospitals} Krankenhäuser gezählt. Jede Zahl ist eine Summe über die Kohorte, nie von einem Krankenhaus. Jeder kann sie aus der veröffentlichten Summe berechnen.`,
    ),
  things: {
    rows: 'Zeilen',
    stays: 'Aufenthalte',
    images: 'Bilder',
    texts: 'Texte',
  },
  hospitals: 'Krankenhäuser',
  epsilon: 'ε dieser Zählungen',
  delta: (delta) => `bei δ = ${delta}, für jede Zeile`,
  noise: 'Rauschen in jeder Zählung',
  deviation: 'Standardabweichung, zusätzlich zu ±; Zählungen können unter 0 liegen',
  exact: 'keines',
  answer: (column) => `${column}, die Antwort`,
  known: (values) => `${values} mit Wert`,
  missing: (share) => `${share} fehlen`,
  middle: (mean, half) => `Mittelwert ${mean} ± ${half}`,
  quartiles: (of, width) => `Quartile ${of} (± ${width})`,
  range: 'Bereich',
  value: 'Wert',
  count: 'Anzahl',
  share: 'Anteil',
  to: (low, high) => `${low} bis ${high}`,
  leftOut: (columns) => `${columns} weitere Spalten: „consilium operator statistics“ zeigt sie.`,
}
