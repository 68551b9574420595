import { pluralIn } from '../../lib/language'
import type * as en from '../payouts'
import { reason as reasons } from './general'

const plural = pluralIn('de')
const list = new Intl.ListFormat('de')

export const payouts: typeof en.payouts = {
  title: 'Bezahlt und nicht bezahlt',
  means:
    'Aus den Ereignissen des Contracts und den Bedingungen der Aufgabe. Der Aufruf „explain“ des Contracts nennt dieselben Gründe.',
  contribution: 'Beitrag',
  contributionMeans: (rounds) =>
    `Der Anteil eines Krankenhauses ist sein Gewicht mal seine Runden in angenommenen Summen, im Verhältnis zu allen Krankenhäusern. Die Zahlungen sind die ${plural(rounds, 'der letzten Runde', `der letzten ${rounds} Runden`)}, die etwas gezahlt haben.`,
  share: 'Anteil',
  ofRound: (round) => `Runde ${round}`,
  settled: (accepted, cohorts, paid) =>
    `Diese Runde ist abgerechnet: ${accepted} von ${cohorts} ${plural(cohorts, 'Kohorte', 'Kohorten')} angenommen, ${paid}.`,
  paid: (parties, amount) => `zusammen ${amount} für ${parties}`,
  nothing: 'keine Belohnungen',
  parties: (hospitals, voters, aggregator) =>
    list.format([
      ...(hospitals ? [`${hospitals} ${plural(hospitals, 'Krankenhaus', 'Krankenhäuser')}`] : []),
      ...(voters ? [`${voters} Bewerter`] : []),
      ...(aggregator ? ['den Aggregator'] : []),
    ]),
  statistics:
    'Diese Runde ist abgerechnet: Sie hat Statistiken zum Skalieren der Daten addiert und zahlt deshalb keine Belohnungen.',
  void: (why) => `Diese Runde ist ungültig: ${why}. Sie zahlt keine Belohnungen.`,
  running: (phase) => `Diese Runde ist nicht vorbei: ${phase} Der Contract zahlt an ihrem Ende.`,
  more: (n) => `${n} weitere`,
  wasNotPaid: (round) => ` wurde in Runde ${round} nicht bezahlt: `,
  lastRound: (round) => `Runde ${round}, die letzte beendete`,
  why: {
    sat_out: () => 'war in keiner Kohorte dieser Runde.',
    not_committed: () => 'hat kein Commitment zu einem Update abgegeben.',
    not_in_sum: () => 'das Update ist in keiner veröffentlichten Summe.',
    harmful: (median, floor) => `Slash, denn der Median ${median} der Kohorte liegt unter der Grenze ${floor}.`,
    rejected: (median, floor) => `der Median ${median} der Kohorte liegt unter der Schwelle ${floor}.`,
    no_improvement: (median) => `der Median ${median} der Kohorte ist angenommen, aber keine Verbesserung.`,
    no_rank: (median, floor) => `ihr Median ${median} liegt unter ${floor}, dem kleinsten mit einem Rang.`,
    no_seat: () => 'wurde nicht ins Komitee gelost.',
    stood_down: () => 'ist aus dem Komitee zurückgetreten.',
    not_revealed: () => 'hat die Bewertungen nicht aufgedeckt.',
    does_not_match: () => 'sagte, dass die veröffentlichten Summen nicht stimmen; die meisten Bewerter widersprachen.',
    invalid: () => 'nannte eine Summe ein ungültiges Modell; die meisten Bewerter widersprachen.',
    far: (score, reach, median) => `die Bewertung ${score} liegt mehr als ${reach} vom Median ${median} entfernt.`,
    untested: () => 'keine Summe unterschied sich genug von ihrem Köder, um das Komitee zu testen.',
    failed_decoy: (decoy, score) =>
      `Slash, denn eine Summe mit umgekehrtem Vorzeichen bekam die Bewertung ${decoy} und die echte ${score}.`,
    late: () => 'handelte in einer Nachfrist, das kostet das Entgelt der Runde.',
    slashed: (reason) => `Slash, Grund: ${reasons[reason]}.`,
  },
}
