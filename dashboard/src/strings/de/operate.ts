import type * as en from '../operate'

export const operate: typeof en.operate = {
  title: 'Betreiben',
  means:
    'Das Konto, das diese Aufgabe vorgeschlagen hat, kann den Pool aufstocken, die Aufgabe stoppen und die Erstattung abheben.',
  open: 'Diese Aufgabe betreiben …',
  notYours: 'Nur das Konto, das diese Aufgabe vorgeschlagen hat, kann sie betreiben:',
  fund: 'Pool aufstocken',
  fundMeans:
    'Jede Runde kann dann gleich viel mehr zahlen. Die Erstattung enthält die Teile nicht gespielter Runden. Geld, das eine gespielte Runde nicht verdient, wird verbrannt.',
  fundOver: 'Alle sind beigetreten, deshalb steht der Pool fest.',
  fundEnded: 'Die Aufgabe ist beendet und damit auch ihr Pool.',
  room: (amount) =>
    `Die Kaution des Aggregators erlaubt höchstens ${amount} mehr: Eine versäumte Runde muss den Aggregator mindestens das Doppelte ihres Entgelts kosten.`,
  tooMuch: (amount) => `Die Kaution des Aggregators ist dafür zu klein. Fügen Sie höchstens ${amount} Token hinzu.`,
  payRole: 'Eine Runde zahlt höchstens',
  fundGo: 'Freigeben und hinzufügen',
  stop: 'Aufgabe stoppen',
  stopOpen: 'Stoppen …',
  stopJoining:
    'Die Aufgabe endet sofort. Alle können ihre Kautionen freigeben, und Sie bekommen den ganzen Pool erstattet.',
  stopRunning: (last) =>
    `Die laufende Runde wird wie üblich beendet und bezahlt. Runde ${last} ist die letzte. Danach bekommen Sie die Teile des Pools für nicht gespielte Runden erstattet. Geld, das gespielte Runden nicht verdient haben, wird verbrannt.`,
  stopForGood: 'Das lässt sich nicht rückgängig machen.',
  stopping: (last) => `Sie haben sie gestoppt. Runde ${last} ist die letzte.`,
  stopEnded: 'Sie ist beendet.',
  refund: 'Erstattung',
  refundMeans: 'Aus den Pools aller Ihrer beendeten Aufgaben.',
  refundable: 'Für Sie abhebbar',
  refundGo: 'Abheben',
  model: 'Das Modell',
  modelMeans:
    'Chain und Artefaktspeicher legen das Modell fest. Die Befehlszeile leitet es ab, wie jedes Krankenhaus, und prüft vorher jede Runde. Das kann jeder.',
  modelSources:
    'deployment.json ist das Adressbuch der Contracts. artifacts ist ein Ordner oder Mirror des Artefaktspeichers.',
  modelSoFar: 'Die Aufgabe ist nicht vorbei. Das ist das Modell nach ihrer letzten beendeten Runde.',
  modelFiles: 'Dateien des Modells',
  modelFile: {
    'model.safetensors': 'die Parameter',
    'model.json': 'eine Beschreibung der Parameter',
    'model-card.md': 'die Model Card: Daten, Datenschutz, Bewertungen',
    'proof.json': 'die Prüfungen jeder Runde',
    'program.json': 'das Programm: der Graph des Modells',
    'program.safetensors': 'die Gewichte, die der Autor dem Programm gab',
    'program-frozen.safetensors': 'seine Tensoren, die kein Krankenhaus trainiert',
    'program-tokenizer.json': 'macht aus Texten Token',
    'model.onnx': 'das Modell allein, für onnxruntime',
    'model-int8.onnx': 'dasselbe mit 8-Bit-Gewichten, für Telefone',
    'report.json': 'was es taugt: eine Auswertung mit den signierten Zahlen der Nodes',
    'report.html': 'dasselbe als Seite',
    'report.svg': 'dasselbe als Bild',
  },
  modelAfter: (round, rounds, verified) =>
    `Nach Runde ${round} von ${rounds}. ${verified ? 'Jede Runde wurde beim Ableiten des Modells geprüft.' : 'NICHT GEPRÜFT: Einige Prüfungen schlagen fehl. Siehe die Model Card.'}`,
  modelDoubt:
    'Sie müssen diesem Server nicht vertrauen. Um das Modell selbst von der Chain abzuleiten, führen Sie aus:',
  modelNone: 'Noch ist keine Trainingsrunde beendet, deshalb gibt es kein Modell.',
}
