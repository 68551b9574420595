/** Texts of an arena: its leaderboard and its trainers' curves. They load with it, and not with each page. */
export const arena = {
  title: 'Arena',
  means: (decay: string) =>
    `Each trainer’s update is public. Each trains alone, voters rank the models, and the best becomes the next base. A rank earns ${decay} of the one before; a model that hardly improves has no rank.`,
  judging: (round: number, trainers: number) =>
    `Round ${round} with ${trainers} trainers is not over. Ranks follow once the voters have revealed their scores.`,
  nobody: 'No round has begun.',
  place: 'Place',
  rank: 'Latest rank',
  firsts: 'First places',
  ranked: 'Ranked rounds',
  curve: 'A trainer’s curve',
  choice: (place: number, account: string) => `${place}. ${account}`,
  own: 'This trainer',
  best: 'Best of the round',
}
