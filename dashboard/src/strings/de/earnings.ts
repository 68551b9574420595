import type * as en from '../earnings'

export const earnings: typeof en.earnings = {
  title: 'Verdient',
  means:
    'Ein Monat zählt die Belohnungen, die Sie in ihm abgeholt haben, nach UTC. Slashes stecken im Wert des Stakes, nicht hier. Der Export enthält alle Einträge.',
  month: 'Monat',
  share: 'Im Vergleich',
  unclaimed: 'Freigegeben, noch nicht abgeholt',
  inAll: 'Gesamtwert',
  inAllMeans: 'Stake, Stake im Unbonding und freigegebene Belohnungen',
  earned: 'Insgesamt verdient',
  earnedMeans: 'Abgeholt und freigegeben',
  vesting: 'Noch nicht freigegeben',
  until: 'alles bis',
  left: (request) => `Bisherige Zeit von Antrag ${request} im Unbonding`,
}

export const restake: typeof en.restake = {
  title: 'Abholen und neu delegieren',
  steps: (amount, node) => [
    `Schritt 1 holt Ihre Belohnungen von ${node} ab: mindestens ${amount} Token.`,
    `Schritt 2 delegiert genau ${amount} Token wieder an ${node}.`,
  ],
  means:
    'Ihre Wallet fragt dreimal: für jeden Schritt und für eine Signatur, die diesen Betrag freigibt. Belohnungen, die inzwischen dazukommen, bleiben in Ihrer Wallet.',
  less: (amount) =>
    `Nur ${amount} Token wurden abgeholt, weil jemand inzwischen mit diesem Konto abgeholt hat. Nichts wurde delegiert.`,
  stands: (amount) =>
    `Schritt 1 ist erledigt: ${amount} abgeholte Token sind in Ihrer Wallet. Sie sind nicht delegiert.`,
  goOn: 'Jetzt delegieren',
  keep: 'Behalten',
}

export const pick: typeof en.pick = {
  none: 'Node wählen',
  other: 'Andere Adresse …',
  address: 'Adresse der Node',
  rate: (rate) => `${rate} in 30 Tagen`,
  option: (node, rate, commission) => `${node}: ${rate}, Provision ${commission}`,
}
