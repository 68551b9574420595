import { formatFixed } from '../../lib/amounts'
import { pluralIn } from '../../lib/language'
import type * as en from '../verify'

const plural = pluralIn('de')

export const verify: typeof en.verify = {
  steps: 'Schritte',
  state: { holds: 'stimmt', fails: 'FALSCH', waits: 'noch nicht', skipped: 'nicht geprüft', running: 'läuft …' },
  mark: { holds: '✓', fails: '✗', waits: '…', skipped: '–', running: '›' },
  node: 'Chain-Knoten',
  nodeOfSite: (host) => `der Knoten, den diese Website nennt (${host})`,
  nodeOfWallet: (name) => `der Knoten Ihrer Wallet (${name})`,
  wallet: 'im Browser',
  again: 'Erneut prüfen',
  noNode:
    'Diese Website nennt keinen Chain-Knoten, und der Browser hat keine Wallet mit einem. Verbinden Sie eine Wallet, oder verwenden Sie die Befehlszeile unten.',
  asking: 'Die Aufzeichnung der Runde wird von der Chain gelesen',
  verdict: {
    running: 'Wird geprüft …',
    holds: 'Alle Prüfungen stimmen.',
    unchecked: 'Nicht prüfbar: Das sagt nichts über die Runde, weder Gutes noch Schlechtes. Siehe die Schritte.',
    partly: 'Keine Prüfung schlägt fehl, aber einige waren nicht möglich. Siehe die Schritte.',
    fails: 'Eine Prüfung schlägt FEHL. Verlassen Sie sich nicht auf diese Runde, bis Sie den Grund kennen.',
  },
  took: (seconds) => `Es dauerte ${formatFixed(seconds, 1)} s.`,
  not: 'Diese Prüfungen beweisen nicht, wie Krankenhäuser trainiert haben oder dass Bewertungen und Zahlungen richtig sind. Sie vertrauen dem Chain-Knoten beim Zustand der Chain. Sie vertrauen dieser Website bei den Adressen der Contracts und beim Code der Prüfungen. Für die volle Prüfung führen Sie auf Ihrem eigenen Rechner aus:',
  command: (task, round) => `consilium verify ${task} ${round}`,

  chain: 'Der Knoten ist auf der Chain und hat die Contracts',
  chainHolds: (id, contract, node) =>
    `Der Knoten ist ${node}, auf Chain ${id}, mit Code an ${contract}. Vergleichen Sie diese Adresse mit einer aus anderer Quelle.`,
  wrongChain: (given, wanted) =>
    `Der Knoten ist auf Chain ${given}, aber die Contracts sind auf Chain ${wanted}. Wechseln Sie das Netzwerk der Wallet.`,
  noCode: (contract) => `An ${contract} gibt es auf dieser Chain keinen Contract.`,
  unreachable: (node, why) =>
    `Das ließ sich von diesem Knoten nicht erfragen: ${node}: ${why}. Wählen Sie einen anderen Knoten, oder versuchen Sie es später.`,

  record: 'Die Aufzeichnung der Runde ist vollständig',
  recordHolds: (events, block, hospitals, survivors) =>
    `Gelesen aus ${events} Ereignissen und vom Contract bei Block ${block}: Krankenhäuser mit Commitment: ${hospitals}, davon in den Summen: ${survivors}.`,
  recordUnread: (why) => `Die Aufzeichnung ließ sich nicht lesen, deshalb wurde nichts darin geprüft: ${why}`,
  noAnswer: 'der Knoten antwortet nicht',
  code: (code) => `der Knoten meldet einen Fehler (Code ${code})`,
  manyQueries: (most) =>
    `der Knoten antwortet für so wenige Blöcke auf einmal, dass ${most} Anfragen nicht reichen. Verwenden Sie einen anderen Knoten.`,
  noTask: (task) => `Der Contract hat keine Aufgabe ${task}.`,
  notBegun: 'Diese Runde hat nicht begonnen.',
  notFixed: 'Die Verbliebenen sind noch nicht festgelegt.',
  noPoints: (hospital, given, wanted) =>
    `Die Ereignisse enthalten ${given} Commitments von ${hospital}. Eine Summe aus ${wanted} Blobs braucht ${wanted}.`,
  notCommitted: (hospital) => `${hospital} ist in den Summen, hat aber im Contract kein Commitment.`,
  void: 'Die Runde ist ungültig und ändert deshalb das Modell nicht.',
  noCohorts: 'Keine Kohorte dieser Runde hat eine Summe.',

  decoys: 'Die Summen mit umgekehrtem Vorzeichen standen vor der Veröffentlichung fest',
  decoysHolds:
    'Der Seed passt zu seinem Commitment und ergibt dieselben Summen mit umgekehrtem Vorzeichen wie die Chain.',
  decoysWait: 'Der Aggregator legt sie nach den Aufdeckungen offen.',
  decoysUnset: 'Der Aggregator hat noch kein Commitment zu ihnen abgegeben.',
  noSeed:
    'Keine Transaktion an den Contract zeigt den Seed, weil ein anderer Contract ihn weitergab. Nur der Contract hat ihn geprüft.',
  manyBlocks: (blocks) =>
    `Der Seed ist in einem von ${blocks} Blöcken, zu vielen für eine Seite. Nur der Contract hat ihn geprüft.`,
  flippedWrong: (cohort, onChain) =>
    `Kohorte ${cohort} hat auf der Chain ${onChain ? 'ein' : 'kein'} umgekehrtes Vorzeichen, nach dem Seed aber ${onChain ? 'keines' : 'eines'}.`,

  negatedDelta: 'Das negierte Delta der Summen mit umgekehrtem Vorzeichen',
  negatedDeltaUnused:
    'Keine Summe dieser Runde hatte ein umgekehrtes Vorzeichen, deshalb gibt es kein negiertes Delta.',
  negatedDeltaFirst: 'Vor der ersten Runde gibt es keine Runden, ihr negiertes Delta ist null.',
  negatedDeltaWrong: (blob) => `Blob ${blob}: Das negierte Delta folgt nicht aus den Runden davor.`,
  negatedDeltaHolds: (rounds) =>
    `Es wurde aus allen Summen ${plural(rounds, 'der Runde', `der ${rounds} Runden`)} davor neu abgeleitet. Jede Summe hat den Hash, den der Contract hält.`,
  negatedDeltaReading: (round, last) => `Die Summen von Runde ${round} von ${last} werden gelesen.`,
  negatedDeltaBeyond:
    'Es passt. Aber ein Krankenhaus hat Lanes jenseits der Zahlen eines Updates benutzt, und nur der Server sagt, wie viele Zahlen es gibt. Die Befehlszeile leitet diese Anzahl aus der Aufgabendatei ab.',
  negatedDeltaLater:
    'Der Aggregator gab vor der Veröffentlichung ein Commitment dazu ab. Es gibt zu viele frühere Runden, um sie hier zu lesen. Das Komitee hat es geprüft, und die Befehlszeile kann es noch einmal prüfen.',
  inRound: (round, cohort, what) => `Runde ${round}, Kohorte ${cohort}: ${what}`,

  sum: (cohort) => `Kohorte ${cohort}: Die Commitments ergeben zusammen die Summe des Contracts`,
  sumHolds: (survivors, weight, blobs) =>
    `Die Commitments von ${survivors} ${plural(survivors, 'Krankenhaus', 'Krankenhäusern')} haben die Hashes, auf die man sich dort festgelegt hat. Mit einem Gesamtgewicht von ${weight} ergeben sie ${plural(blobs, 'ihren Hash', `die Hashes ihrer ${blobs} Blobs`)}.`,
  sumFlipped: 'Sie wurde mit umgekehrtem Vorzeichen veröffentlicht, um das Komitee zu testen.',
  sumWaits: (blob) => `Blob ${blob}: Der Contract hat ihn noch nicht addiert.`,
  sumUndisclosed: (blob) =>
    `Blob ${blob}: Das lässt sich nicht vergleichen, bevor der Aggregator offenlegt, welche Summen ein umgekehrtes Vorzeichen haben.`,
  sumUnshown: (blob) =>
    `Blob ${blob}: Keine Transaktion an den Contract zeigt seine Blinding-Werte, und ohne sie passt jede Summe. Nur der Contract hat sie geprüft.`,
  sumDiffers: (blob, held, given) =>
    `Blob ${blob}: Der Contract hält ${held}, aber die Commitments der Verbliebenen ergeben ${given}.`,
  eventDiffers: (blob, held, event) =>
    `Blob ${blob}: Der Contract hält ${held}, aber das Ereignis der Veröffentlichung nennt ${event}.`,
  pointUnshown: (blob, hospital) => `Blob ${blob}: Kein Ereignis zeigt das Commitment von ${hospital}.`,
  pointDiffers: (blob, hospital) =>
    `Blob ${blob}: Das gezeigte Commitment von ${hospital} hat nicht den Hash, auf den es sich festgelegt hat.`,
  dropped: (cohort) => `Kohorte ${cohort} hat keine Summe: Der Aggregator hat sie verworfen.`,
  malformed: (why) => `Die Ereignisse enthalten ein ungültiges Commitment: ${why}`,
  sums: 'Die Summen',
  crash: 'Die Prüfungen selbst',
  noWorker: 'Der Browser konnte sie nicht starten.',

  blob: (cohort) => `Kohorte ${cohort}: Die veröffentlichten Blobs sind diese Summe`,
  blobHolds: (blobs) =>
    plural(
      blobs,
      'Der Blob wurde geholt, sein Commitment neu berechnet; es ergibt denselben Hash.',
      `${blobs} Blobs wurden geholt, ihre Commitments neu berechnet; sie ergeben dieselben Hashes.`,
    ),
  blobWaits: (blob) => `Blob ${blob} ist noch nicht veröffentlicht.`,
  blobMissing: (blob, hash) => `Blob ${blob}: Dieser Mirror hat ${hash} nicht.`,
  blobUnreachable: (blob, why) => `Blob ${blob}: Der Mirror antwortet nicht: ${why}`,
  blobLength: (blob, bytes) => `Blob ${blob}: Er hat ${bytes} Byte, ein Blob hat 131072.`,
  blobScalar: (blob, at) =>
    `Blob ${blob}: Das ist kein Blob, weil Feldelement ${at} nicht unter der Ordnung der Gruppe liegt.`,
  blobDiffers: (blob, held, given) =>
    `Blob ${blob}: Der Contract hält ${held}, aber der Blob des Mirrors hat das Commitment ${given}. Er ist beschädigt oder wurde manipuliert.`,
  ceremony: 'Die Punkte von Ethereums KZG-Zeremonie',
  ceremonyUnread: (why) => `Sie ließen sich von dieser Website nicht laden: ${why}`,
  ceremonyFails: (why) => `Diese Website liefert andere Punkte: ${why}`,
  otherPoints: 'die Punkte sind nicht die von Ethereums Zeremonie: Ihr SHA-256 weicht ab',
  notPoint: (raw) => `${raw} ist kein Punkt von G1 auf BLS12-381`,
  ceremonyHolds: '4096 Punkte, mit dem SHA-256 der Zeremonie.',
}
