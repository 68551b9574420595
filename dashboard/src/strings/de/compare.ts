import type * as en from '../compare'

export const compare: typeof en.compare = {
  title: 'Aufgaben nebeneinander',
  lead: 'Jedes Diagramm zeigt die Aufgaben einer Metrik. Aufgaben mit anderen Zeilen können leichter oder schwerer sein.',
  choose: 'Wählen Sie in der Liste der Aufgaben zwei bis vier aus.',
  toList: 'Zur Liste der Aufgaben',
  table: 'Zahlen jeder Aufgabe',
  start: 'Am Anfang',
  now: 'Jetzt',
  spent: 'Aus dem Pool ausgegeben',
  noNoise: 'kein Rauschen',
  noFigures: 'Keine Aufgabe hier hat Messwerte aus zwei Runden.',
}
