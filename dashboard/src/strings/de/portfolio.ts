import { pluralIn } from '../../lib/language'
import type * as en from '../portfolio'

const plural = pluralIn('de')

export const delegate: typeof en.delegate = {
  title: 'An diese Node delegieren',
  open: 'Delegieren …',
  held: 'Bereits an diese Node delegiert',
  whatIf: 'Schätzung',
  part: 'Ihr Anteil am verdienenden Stake',
  earned: (days) => `Verdienst ${plural(days, 'am letzten Tag', `in den letzten ${days} Tagen`)} wäre gewesen`,
  aYear: 'Bei gleicher Rate, in einem Jahr',
  atRisk: 'Verlieren kann er',
  atMost: (now) => `alles; ${now}, wenn alle jetzigen Kautionen geslasht würden`,
  unlock: 'Er kommt zurück',
  unlockAt: (period, day) => `${period} nachdem Sie die Delegation auflösen, nicht vor ${day}`,
  commission: 'Provision',
  gas: 'Gas',
  ether: (amount) => `etwa ${amount} Ether zum jetzigen Preis`,
  noGas: 'Der Chain-Knoten gibt keine Schätzung.',
  promises:
    'Renditen sind vergangene, abgerundet und ohne Zinseszins. Künftige Belohnungen können niedriger sein. Ein Slash nimmt jedem Delegator denselben Anteil seines Stakes, auch während des Unbondings.',
  approve: 'Freigabe',
  bySignature: 'Durch eine Signatur: eine Transaktion',
  byTransaction: 'Durch eine Freigabe: zwei Transaktionen',
  contractWallet:
    'Dieses Konto ist ein Contract und hat keinen Schlüssel zum Signieren. Deshalb ist die Freigabe eine Transaktion.',
  go: 'Delegieren',
}

export const portfolio: typeof en.portfolio = {
  title: 'Portfolio',
  lead: 'Stake, Belohnungen und Slashes Ihres Kontos, vom Contract selbst gelesen.',
  fromEvents:
    'Die API antwortet nicht. Deshalb wird das nur von der Chain gelesen. Verlauf und Export kommen mit der API zurück.',
  staked: 'Stake',
  claimable: 'Freigegebene Belohnungen',
  unbonding: 'Unbonding',
  unbondingMeans:
    'Stake im Unbonding verdient nichts. Slashes können ihn treffen, bis Sie ihn auszahlen oder neu delegieren. Beides geht, sobald er fällig ist.',
  holdings: 'Delegationen',
  none: 'Sie haben keine Delegationen. Wählen Sie eine Node.',
  claim: 'Abholen',
  claimAll: 'Alles abholen',
  unbond: 'Delegation auflösen',
  withdraw: 'Auszahlen',
  redelegate: 'Neu delegieren',
  redelegateMeans: (amount) =>
    `${amount} Token sind fällig. Sie können sie an eine andere Node delegieren, ohne sie vorher auszuzahlen.`,
  overWorth: 'Das ist mehr, als Sie dort delegiert haben.',
  howMuch: (all) => `Betrag, von ${all}`,
}
