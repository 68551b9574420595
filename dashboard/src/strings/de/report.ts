import { formatWhole } from '../../lib/amounts'
import type * as en from '../report'

export const report: typeof en.report = {
  title: 'Was das Modell taugt',
  means: (round) =>
    `Nach Runde ${round}, auf Zeilen, die das Modell nie gesehen hat. In Klammern: 95-%-Intervalle. Die Chain kann diese Zahlen nicht beweisen, weil die Zeilen nicht öffentlich sind.`,
  noRows: 'Der Betreiber zeigt keine Zahlen zu eigenen beschrifteten Zeilen.',
  rows: (rows) => `Auf ${formatWhole(rows)} beschrifteten Zeilen des Betreibers.`,
  sites: 'Nach Standort',
  alone: (metric) => `Allein trainiert: ${metric}`,
  site: 'Standort',
  all: 'alle',
  nodes: 'Krankenhäuser und Bewerter der Aufgabe, jeweils auf eigenen zurückgehaltenen Zeilen',
  nodesMean:
    'Das Konto einer Node hat ihre Zahlen signiert; dieser Server hat die Signaturen geprüft. Zahlen sind gerundet, und Zeilen sind auf Zehner abgerundet.',
  node: 'Node',
  notShared: 'nicht geteilt',
  signed: 'signiert von',
  start: (metric) => `Vor dem Training: ${metric}`,
  subgroups: 'Untergruppen',
  subgroup: 'Untergruppe',
  whose: 'Zeilen von',
  operator: 'Betreiber',
  calibration: 'Kalibrierung',
  calibrationMeans: 'Von allen Zeilen mit etwa dieser vorhergesagten Wahrscheinlichkeit der Anteil der Klasse.',
  predicted: 'vorhergesagte Wahrscheinlichkeit',
  observed: 'beobachteter Anteil',
  perfect: 'wie vorhergesagt',
  low: 'Intervall, von',
  high: 'Intervall, bis',
  noCurve: 'Zu wenige Zeilen für eine Kurve.',
  importance: (whose) => `Wichtigkeit der Spalten, Zeilen von: ${whose}`,
  importanceMeans: (metric) =>
    `Verlust an „${metric}“, wenn die Werte der Spalte auf andere Zeilen verteilt werden: das Mittel von zehn Verteilungen. Die dünne Linie reicht vom kleinsten zum größten.`,
  column: 'Spalte',
  loss: 'Verlust',
  range: 'Kleinster bis größter',
  to: (low, high) => `${low} bis ${high}`,
}
