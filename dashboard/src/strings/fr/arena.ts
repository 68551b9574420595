import type * as en from '../arena'

export const arena: typeof en.arena = {
  title: 'Arène',
  means: (decay) =>
    `La mise à jour de chaque participant est publique. Chacun entraîne seul, les évaluateurs classent les modèles, et le meilleur devient la base suivante. Un rang gagne ${decay} du précédent ; un modèle qui n’améliore presque rien n’a pas de rang.`,
  judging: (round, trainers) =>
    `Le tour ${round} avec ${trainers} participants n’est pas terminé. Les rangs suivent dès que les évaluateurs ont révélé leurs scores.`,
  nobody: 'Aucun tour n’a commencé.',
  place: 'Classement',
  rank: 'Dernier rang',
  firsts: 'Premières places',
  ranked: 'Tours classés',
  curve: 'La courbe d’un participant',
  choice: (place, account) => `${place}. ${account}`,
  own: 'Ce participant',
  best: 'Le meilleur du tour',
}
