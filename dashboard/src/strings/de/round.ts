import type * as en from '../round'

export const round: typeof en.round = {
  title: (n, task) => `Runde ${n} von Aufgabe ${task}`,
  cohorts: 'Kohorten',
  yes: 'ja',
  no: 'nein',
  unknown: 'noch nicht',
  match: 'gleich der Summe des Contracts',
  waits: 'noch nicht',
  differs: 'weicht ab',
  flipped: 'Vorzeichen umgekehrt, um das Komitee zu testen',
  fate: { open: 'noch nicht', published: 'veröffentlicht', dropped: 'verworfen', accused: 'im Streitfall' },
  committee: 'Komitee',
  committeeMeans:
    'Der Beacon und der eigene Schlüssel jedes Bewerters losen das Komitee aus. Deshalb kennt es vorher niemand. Bewerter geben Commitments zu ihren Bewertungen ab und decken sie dann auf.',
  noCommittee: 'Das Komitee ist noch nicht ausgelost.',
  verdict: {
    not_revealed: 'nicht aufgedeckt',
    scored: 'aufgedeckt',
    does_not_match: 'sagt, dass die veröffentlichten Summen nicht stimmen',
    stood_down: 'zurückgetreten',
  },
  invalid: 'kein gültiges Modell',
  otherReading: (scores) => `mit umgekehrtem Vorzeichen gelesen: ${scores}`,
  events: (n) => `${n} Ereignisse`,
  spread: 'Streuung der Bewertungen',
  noPayments: 'Diese Runde hat keine Belohnungen gezahlt und keine Slashes eingezogen.',
  commitments: 'Commitments',
  unshown: 'nicht gezeigt',
  evidence: 'Belege',
  evidenceMeans: 'Diese Seite ist aus diesen Ereignissen des Contracts gebaut.',
  verify: 'Diese Runde selbst prüfen',
  verifyMeans:
    'Ihr Browser liest die Chain, addiert die Commitments, holt die veröffentlichten Summen und berechnet deren Commitments neu. Er verlässt sich für keine Aussage über die Runde auf den Server dieser Website.',
  verifyStart: 'Jetzt prüfen',
}
