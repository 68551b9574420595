import { point } from '../../lib/amounts'
import { pluralIn } from '../../lib/language'
import type * as en from '../general'

const plural = pluralIn('de')

export const name = 'Consilium'
export const skip = 'Zum Inhalt springen'
export const theme: typeof en.theme = { label: 'Farbschema', system: 'System', light: 'Hell', dark: 'Dunkel' }
export const language = 'Sprache'
export const times: typeof en.times = {
  day: 'T',
  hour: 'h',
  minute: 'min',
  second: 's',
  now: 'jetzt',
  ahead: (duration) => `in ${duration}`,
  ago: (duration) => `vor ${duration}`,
}
export const nav: typeof en.nav = {
  overview: 'Überblick',
  tasks: 'Aufgaben',
  market: 'Markt',
  nodes: 'Nodes',
  portfolio: 'Portfolio',
  propose: 'Vorschlagen',
  desk: 'Meine Node',
  wallet: 'Wallet',
  search: 'Suche',
  label: 'Hauptmenü',
  crumbs: 'Pfad zu dieser Seite',
}
export const live: typeof en.live = { connecting: 'verbinde …', live: 'live', lost: 'kein Live-Empfang: neuer Versuch' }
export const footer: typeof en.footer = (block, behind) =>
  block === null
    ? 'Noch ist kein Block indexiert.'
    : `Vollständig bis Block ${block}${behind ? `, ${behind} ${plural(behind, 'Block', 'Blöcke')} hinter der Chain` : ''}. Sie können jede Runde selbst prüfen.`
export const loading = 'Wird geladen'
export const unread = 'noch nicht bekannt'
export const none = 'keine'
export const more = 'Mehr anzeigen'
export const moreRows: typeof en.moreRows = (left) => `Mehr anzeigen (noch ${left})`
export const retry = 'Erneut versuchen'
export const cancel = 'Abbrechen'
export const command = 'Befehl'
export const copy = 'Kopieren'
export const copied = 'Kopiert'
export const explorer = 'Explorer'
export const tokens = 'Token'
export const unreachable =
  'Die API antwortet nicht. Diese Seite ist vielleicht veraltet. Sie versucht es von selbst erneut.'
export const faulty: typeof en.faulty = (detail) => `Das konnte nicht geladen werden: ${detail}`
export const notFound = 'Diese Seite gibt es nicht.'
export const home = 'Zum Überblick'
export const crashed = 'Ein Fehler im Dashboard hat diese Seite angehalten. Laden Sie sie neu.'
export const tableOf = 'Als Tabelle anzeigen'
export const unitBy: typeof en.unitBy = (unit, across) => `${unit}, nach ${across}`
export const both: typeof en.both = (time, utc) => `${time} (${utc})`
export const notAmount = `Das ist kein Betrag. Geben Sie Ziffern ein, mit „${point}“ vor den Nachkommastellen.`
export const overBalance = 'Das ist mehr, als Ihre Wallet enthält.'
export const balance = 'In Ihrer Wallet'
export const amount = 'Betrag, in Token'
export const role: typeof en.role = { hospital: 'Krankenhaus', voter: 'Bewerter', aggregator: 'Aggregator' }
export const roles: typeof en.roles = { hospital: 'Krankenhäuser', voter: 'Bewerter', aggregator: 'Aggregatoren' }
export const phase: typeof en.phase = {
  none: 'Keine',
  joining: 'Beitritt',
  forming: 'Kohortenbildung',
  committing: 'Commitments',
  uploading: 'Upload',
  publishing: 'Veröffentlichung',
  disputing: 'Streitfall',
  drawing: 'Sitzauslosung',
  scoring: 'Bewertung',
  revealing: 'Aufdeckung',
  disclosing: 'Offenlegung der Köder',
  settling: 'Abrechnung',
  ended: 'Beendet',
}
export const phaseMeans: typeof en.phaseMeans = {
  none: '',
  joining: 'Krankenhäuser, Bewerter und der Aggregator hinterlegen ihre Kautionen.',
  forming: 'Der Beacon teilt die Krankenhäuser in Kohorten ein.',
  committing: 'Krankenhäuser trainieren und geben Commitments zu ihren Updates ab.',
  uploading: 'Krankenhäuser laden ihre maskierten Updates zum Aggregator hoch.',
  publishing: 'Der Aggregator veröffentlicht die Summe jeder Kohorte. Die Chain vergleicht sie mit den Commitments.',
  disputing: 'Eine Kohorte hat keine gültige Summe. Der Streitfall findet den Betrüger.',
  drawing: 'Der Beacon lost das Komitee aus.',
  scoring: 'Das Komitee bewertet die Summen anhand zurückgehaltener Daten und gibt Commitments zu den Bewertungen ab.',
  revealing: 'Das Komitee deckt seine Bewertungen auf.',
  disclosing: 'Der Aggregator legt offen, welche Summen ein umgekehrtes Vorzeichen hatten, um das Komitee zu testen.',
  settling: 'Der Contract zahlt Belohnungen und zieht Slashes ein.',
  ended:
    'Die Aufgabe ist vorbei. Der Betreiber bekommt das Geld für nicht gespielte Runden zurück. Geld, das Runden nicht verdient haben, wird verbrannt.',
}
export const outcome: typeof en.outcome = { pending: 'Läuft', settled: 'Abgerechnet', void: 'Ungültig' }
export const voidReason: typeof en.voidReason = {
  none: '',
  too_few_hospitals: 'zu wenige Krankenhäuser gaben ein Commitment ab',
  survivors_not_fixed: 'der Aggregator hat die Verbliebenen nicht festgelegt',
  not_published: 'der Aggregator hat die Summen nicht veröffentlicht',
  too_few_scores: 'zu wenige Mitglieder des Komitees haben aufgedeckt',
  not_disclosed: 'der Aggregator hat seine Köder nicht offengelegt',
  mismatched: 'die veröffentlichten Summen sind andere als die bewerteten',
  no_sums: 'keine Kohorte hatte eine gültige Summe',
  no_randomness: 'der Beacon gab eine Woche lang keinen Wert, deshalb endete die Aufgabe',
}
export const reason: typeof en.reason = {
  harmful_cohort: 'seine Kohorte hat das Modell verschlechtert',
  withheld_upload: 'hat das Update zu seinem Commitment nicht hochgeladen',
  false_upload: 'hat ein anderes Update hochgeladen als das seines Commitments',
  not_revealed: 'hat seine Bewertungen nicht aufgedeckt',
  failed_decoy: 'hat eine Summe mit umgekehrtem Vorzeichen als echt bewertet',
  not_published: 'hat die Summen nicht veröffentlicht',
  not_disclosed: 'hat nicht offengelegt, welche Summen ein umgekehrtes Vorzeichen hatten',
  mismatched:
    'die meisten Bewerter sagen, dass er falsche Summen veröffentlicht oder falsche Krankenhäuser benannt hat',
}
export const kind: typeof en.kind = {
  reward: 'Belohnung',
  slash: 'Slash',
  bounty: 'Prämie',
  refund: 'Erstattung',
  delegated: 'Delegiert',
  unbonding_started: 'Unbonding begonnen',
  unbonded: 'Ausgezahlt',
  claimed: 'Abgeholt',
}
