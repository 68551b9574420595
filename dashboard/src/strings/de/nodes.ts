import { pluralIn } from '../../lib/language'
import type * as en from '../nodes'

const plural = pluralIn('de')

export const nodes: typeof en.nodes = {
  title: 'Nodes',
  role: 'Rolle',
  days: 'Rendite der letzten',
  daysOf: (n) => `${n} Tage`,
  sort: 'Reihenfolge',
  none: 'Keine Node hat diese Rolle.',
  yieldMeans:
    'Die Rendite ist der Ertrag eines delegierten Tokens in dieser Zeit, nach Provision und Slashes. Sie ist kein Jahreswert. Künftige Renditen können niedriger oder Verluste sein. Neue Nodes zeigen keine und stehen am Ende.',
  compare: 'Vergleichen',
  compareOf: (account) => `${account} vergleichen`,
  compareGo: (n) => `${n} Nodes vergleichen`,
  compareMost: 'Wählen Sie zwei bis vier Nodes zum Vergleichen.',
  bySort: {
    yield: 'Höchste Rendite',
    assets: 'Größter Stake',
    commission: 'Niedrigste Provision',
    rewarded: 'Meiste Belohnungen',
    burnt: 'Wenigste Slashes',
  },
}

export const decide: typeof en.decide = {
  title: 'Bevor Sie delegieren',
  rate: (days) => `Rendite, ${days} Tage`,
  aYear: (rate) => `${rate} im Jahr, ohne Zinseszins, abgerundet`,
  over: (duration) => `nur über ${duration}`,
  soFar: (rate, duration) => `${rate} in ${duration}: zu wenig für eine Rendite`,
  isNew: 'Neu',
  noRate: 'neu: kein Jahreswert',
  newMeans:
    'Der erste Stake ist jünger als 30 Tage, oder weniger als 5 Runden wurden bezahlt. Deshalb wird keine Rendite gezeigt.',
  worst: 'Größter Verlust',
  all: 'Alles',
  locked: (part, fault) => `${part} sind jetzt in Kautionen. Ein einziger Fehler kostet bis zu ${fault} einer Kaution.`,
  slashes: 'Bisherige Slashes',
  never: 'Keine',
  met: 'Fristen eingehalten',
  noneDue: 'Noch keine fällig',
  metOf: (made, due) => `${made} von ${due}`,
  inRounds: (n) => plural(n, 'in der letzten Runde', `in den letzten ${n} Runden`),
  age: 'Alter des Stakes',
  unstaked: 'Noch kein Stake',
  paid: (n) => `${n} ${plural(n, 'bezahlte Runde', 'bezahlte Runden')}`,
  commissionCap: (notice) => `kann auf 100 % steigen, ${notice} nach einer Ankündigung`,
  own: 'Eigener Stake des Besitzers',
  ownPart: (part) => `${part} des Stakes`,
  unlock: 'Verfügbar',
  unlockMeans: (day) => `nachdem Sie die Delegation auflösen: frühestens ${day}`,
  period: 'eine Unbonding-Frist',
}

export const compare: typeof en.compare = {
  title: 'Nodes vergleichen',
  lead: 'Die Zeilen sind die Fakten für Ihre Entscheidung. Renditen sind vergangene, nach Provision und Slashes. Künftige Renditen können niedriger oder Verluste sein.',
  decision: 'Fakt',
  none: 'Keine Node ist gewählt. Wählen Sie in der Liste der Nodes zwei bis vier aus.',
  back: 'Zur Liste der Nodes',
}

export const record: typeof en.record = {
  title: 'Bilanz',
  means: (rounds) =>
    `Von der Chain, über die letzten ${rounds} beendeten Runden ihrer Aufgaben. Ein Sitz ist geheim, bis sein Bewerter ein Commitment zu Bewertungen abgibt.`,
  none: 'Noch ist keine Runde ihrer Aufgaben beendet.',
  duty: {
    commit: 'Commitment zum Update abgeben',
    upload: 'Update hochladen',
    reveal: 'Bewertungen aufdecken',
    fix_survivors: 'Verbliebene festlegen',
    publish: 'Summen veröffentlichen',
    disclose: 'Köder offenlegen',
  },
  accepted: { hospital: 'Angenommene Summen', voter: '', aggregator: 'Abgerechnete Runden' },
  outOf: (n, all) => `${n} von ${all}`,
  median: 'Median der Bewertungen ihrer Kohorten',
  allMedian: (score) => `${score} aller Kohorten`,
  seats: 'Eingenommene Sitze',
  distance: 'Mittlerer Abstand vom Median',
  decoys: 'Erkannte Köder',
  lastAct: 'Letzte Handlung auf der Chain',
  stake: 'Stake im Verlauf',
  rewards: 'Belohnungen und Slashes im Verlauf',
}

export const node: typeof en.node = {
  tokens: 'Token',
  onePeriod: 'Der erste Tag ist noch nicht vorbei.',
  stake: 'Stake',
  stakeMeans: 'Alle Token hinter dieser Node. Ein Slash nimmt einen Teil von allen, auch von Token im Unbonding.',
  free: 'Frei für neue Kautionen',
  next: (bps, when) => `${bps} ab ${when}`,
  earned: 'verdient',
  lost: 'durch Slashes verloren',
  history: 'Wert eines Anteils im Verlauf',
  worthUnit: 'Token je Anteil',
  noHistory: 'Auf diese Node hat noch niemand Stake gesetzt.',
  flat: 'Der Wert hat sich nie geändert: Kein Slash hat diese Node getroffen.',
  slashes: 'Slashes',
  noSlashes: 'Nie geslasht.',
  tasks: 'Aufgaben',
  noTasks: 'Diese Node ist keiner Aufgabe beigetreten.',
  ranks: 'Arena',
  ranked: (best, firsts, rounds) =>
    best === null ? `kein Rang in ${rounds} Runden` : `bester Rang ${best}; Erster in ${firsts} von ${rounds} Runden`,
  delegators: 'Delegatoren',
  noDelegators: 'Nur die Node selbst.',
  paid: 'Runden mit Belohnung oder Slash',
  since: 'seit',
}

export const account: typeof en.account = {
  title: 'Konto',
  delegations: 'Delegationen',
  none: 'Dieses Konto hat keine Delegationen.',
  unbonding: 'Unbonding',
  noUnbonding: 'Nichts ist im Unbonding.',
  history: 'Verlauf',
  noHistory: 'Dieses Konto hat noch keinen Verlauf.',
  csv: 'Als CSV herunterladen',
  shares: (n) => `${n} Anteile`,
  wiped: 'ein Slash hat alles genommen',
  look: 'Konto nachschlagen',
  lookHint: '0x und 40 hexadezimale Ziffern',
  lookBad: 'Das ist kein Konto. Ein Konto ist 0x und 40 hexadezimale Ziffern.',
  show: 'Anzeigen',
}
