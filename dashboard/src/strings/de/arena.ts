import type * as en from '../arena'

export const arena: typeof en.arena = {
  title: 'Arena',
  means: (decay) =>
    `Das Update jedes Teilnehmers ist öffentlich. Jeder trainiert allein, Bewerter ordnen die Modelle, und das beste wird die nächste Grundlage. Ein Rang verdient ${decay} des vorigen; ein Modell, das kaum verbessert, hat keinen Rang.`,
  judging: (round, trainers) =>
    `Runde ${round} mit ${trainers} Teilnehmern ist nicht vorbei. Die Ränge folgen, sobald die Bewerter ihre Punkte aufgedeckt haben.`,
  nobody: 'Keine Runde hat begonnen.',
  place: 'Platz',
  rank: 'Letzter Rang',
  firsts: 'Erste Plätze',
  ranked: 'Runden mit Rang',
  curve: 'Die Kurve eines Teilnehmers',
  choice: (place, account) => `${place}. ${account}`,
  own: 'Dieser Teilnehmer',
  best: 'Der beste der Runde',
}
