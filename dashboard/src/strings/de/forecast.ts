import type * as en from '../forecast'

export const forecast: typeof en.forecast = {
  title: 'Prognose aus Ihren eigenen Zeilen',
  means:
    'Simulieren Sie die Aufgabe auf Ihrem eigenen Rechner, und öffnen Sie hier das Ergebnis. Nichts davon verlässt diesen Browser.',
  command: 'consilium simulate task.toml --table rows.csv --sites COLUMN --output simulated.json',
  file: 'Ergebnis der Simulation (JSON)',
  pooled: 'Mit allen Zeilen an einem Ort',
  rejected: 'Abgelehnte ehrliche Kohorten',
  rejectedMeans: 'von allen mit einer Summe',
  slashed: 'Geslashte ehrliche Krankenhäuser',
  slashedMeans: 'Mal, in allen Runden',
  of: (some, all) => `${some} von ${all}`,
  paid: 'In allen Runden gezahlt',
  ofPool: (pool) => `vom Pool von ${pool}`,
  most: 'In der teuersten Runde gezahlt',
  void: 'Ungültige Runden',
  absent: 'Versäumte Commitments',
  unfair:
    'Alle Krankenhäuser einer Simulation sind ehrlich. Senken Sie accept_floor und harmful_below, oder verlangen Sie Bewerter mit mehr Zeilen.',
  otherTask: (sections) =>
    `Diese Simulation ist von einer anderen Aufgabe. Diese Teile weichen ab: ${sections.join(', ')}. Simulieren Sie die Datei, wie sie jetzt ist.`,
  refused: {
    tooLarge: (most) => `Die Datei ist größer als ${most} und wird deshalb nicht gelesen.`,
    noJson: 'Die Datei ist kein JSON.',
    foreign:
      'Die Datei ist kein Ergebnis von consilium simulate, oder eine ältere Version hat sie geschrieben. Schreiben Sie sie neu mit --output.',
    grid: 'Die Datei ist die eines Gitters. Simulieren Sie die Aufgabe ohne --grid.',
    malformed: (field) => `Die Datei ist beschädigt: ${field} fehlt oder ist ungültig.`,
  },
}
