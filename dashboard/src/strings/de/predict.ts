import { formatPrecise, formatShare } from '../../lib/amounts'
import type * as en from '../predict'

export const predict: typeof en.predict = {
  open: 'Modell ausprobieren …',
  title: 'Modell ausprobieren',
  means: (size) =>
    `Das Modell läuft in diesem Browser. Beim ersten Mal werden das Modell und onnxruntime-web geladen (${size}). Das Modell ist das dieses Servers: Um sicher zu sein, leiten Sie es selbst ab, wie unten, und verwenden Sie consilium predict.`,
  stays: 'Ihre Werte bleiben in diesem Browser: Nichts davon wird gesendet oder gespeichert.',
  eightBits:
    'Diese Zahlen stammen aus der Datei mit 8-Bit-Gewichten. Sie können etwas von denen von consilium predict abweichen.',
  notForPatients: 'Verwenden Sie kein Modell allein für Entscheidungen über Menschen.',
  range: (name, min, max) => `${name} (${min} bis ${max})`,
  missing: 'fehlt',
  notNumber: 'Geben Sie eine Zahl mit Dezimalpunkt ein, oder lassen Sie das Feld leer, wenn sie fehlt.',
  outside: (min, max) => `Das Modell kennt Werte von ${min} bis ${max}.`,
  codeUnknown: (codes) => `Das Modell kennt die Codes ${codes.join(', ')}.`,
  valueUnknown: (names) => `Das Modell kennt die Werte ${names.join(', ')}.`,
  table: 'Aus einer Tabelle ausfüllen: CSV, Spaltennamen wie hier',
  pasted: 'Oder einfügen, mit der ersten Zeile',
  row: 'Zeile',
  ofRows: (rows) => `von ${rows}`,
  lacks: (names) => `Der Tabelle fehlt ${names.join(', ')}: im Formular als fehlend.`,
  noColumns: 'Die erste Zeile nennt keine Spalte des Modells. Fügen Sie die Tabelle mit der Namenszeile ein.',
  image: (width, height) => `Ein Bild: PNG oder JPEG, wird auf ${width} × ${height} Pixel gebracht`,
  seen: 'Das Bild, wie das Modell es sieht',
  transparent: 'Das Bild ist teilweise durchsichtig. Speichern Sie es ohne Alphakanal.',
  go: 'Vorhersagen',
  result: 'Vorhersage',
  percent: formatShare,
  amount: (value, unit) => `${formatPrecise(value)} ${unit}`.trim(),
  changed: 'Der Server hat dieses Modell gerade ersetzt. Öffnen Sie diese Seite noch einmal.',
  deep: 'Dieses Modell liest Bilder, die ein Browser nicht liest. Verwenden Sie consilium predict.',
  unread: 'Die Modellbeschreibung des Servers ist hier nicht lesbar.',
}
