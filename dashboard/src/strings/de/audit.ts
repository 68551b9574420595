import { pluralIn } from '../../lib/language'
import type * as en from '../audit'

const plural = pluralIn('de')

export const audit: typeof en.audit = {
  title: (task) => `Audit von Aufgabe ${task}`,
  lead: 'Ihr Browser prüft alle beendeten Runden dieser Aufgabe nacheinander, anhand der Chain und der veröffentlichten Summen.',
  go: 'Alle Runden prüfen',
  again: 'Alle noch einmal prüfen',
  cancel: 'Anhalten',
  reading: 'Die Aufgabe wird von der Chain gelesen …',
  plan: (rounds, blobs) =>
    `Es werden ${rounds} ${plural(rounds, 'Runde', 'Runden')} geprüft und ${blobs} ${plural(blobs, 'Blob', 'Blobs')} zu 128 KiB gelesen.`,
  takes: (duration) => `Das dauert etwa ${duration}. Sie können jederzeit anhalten; das bisher Geprüfte bleibt.`,
  left: (duration) => `noch etwa ${duration}`,
  doing: (round, step) => `Runde ${round}: ${step}`,
  none: 'Noch ist keine Runde dieser Aufgabe beendet.',
  progress: 'Geprüfte Runden',
  done: (n, of) => `${n} von ${of} Runden geprüft`,
  rounds: 'Runden',
  verdict: 'Urteil',
  steps: 'Schritte',
  verdicts: { holds: 'stimmt', fails: 'FALSCH', 'could not check': 'nicht prüfbar' },
  allHold: (rounds) => `Alle Prüfungen aller ${rounds} Runden stimmen.`,
  someFail: (rounds) =>
    `Eine Prüfung schlägt FEHL in: ${rounds}. Verlassen Sie sich nicht auf diese Aufgabe, bis Sie den Grund kennen.`,
  someOpen: (rounds) => `Keine Prüfung schlägt fehl, aber nicht alle waren möglich in: ${rounds}. Siehe die Schritte.`,
  stopped: (left) => `Sie haben angehalten. ${left} Runden wurden nicht geprüft.`,
  roundsOf: (rounds) => rounds.map((one) => `Runde ${one}`).join(', '),
  notTitle: 'Was nicht geprüft wurde',
  notProven: [
    'Die Aufgabendatei, und dass der Contract ihre Bedingungen durchsetzt.',
    'Die Lanes der Summen, die Betrüger beschuldigter Kohorten, das Modell und das Geld: verwenden Sie consilium verify.',
    'Dass Krankenhäuser ehrlich trainiert haben, mit echten Daten und mit allen.',
    'Dass Bewertungen ehrlich sind: Über die Annahme entscheiden die Mediane des Komitees.',
    'Dass der Chain-Knoten seine Chain richtig wiedergibt und diese Website die richtigen Contracts nennt: verwenden Sie Ihren eigenen Knoten.',
    'Dass der Code dieser Website tut, was er sagt: vergleichen Sie ihre Dateien mit dem Quelltext, oder hosten Sie sie selbst.',
  ],
  report: 'Der Bericht',
  reportMeans:
    'Eine JSON-Datei mit allen Urteilen und den Hashes aller geprüften Daten. Wenn Sie sie signieren, sehen andere, wer sie erstellt hat und dass niemand sie verändert hat.',
  download: 'Bericht herunterladen',
  open: 'Signieren …',
  sign: 'Bericht signieren',
  signed: 'Signiert von',
  signing: 'Bestätigen Sie in Ihrer Wallet. Das kostet nichts.',
}
