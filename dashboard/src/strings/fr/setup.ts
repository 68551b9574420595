import type * as en from '../setup'

export const setup: typeof en.setup = {
  title: 'Votre wallet',
  lead: 'Ajoutez ce réseau et son jeton au wallet de votre navigateur.',
  link: 'Configurer votre wallet',
  network: 'Le réseau',
  networkMeans: 'Le bouton saisit ceci pour vous. Vous pouvez aussi le saisir dans un wallet.',
  name: 'Nom',
  chain: 'Identifiant de la chaîne',
  url: 'Nœud de la chaîne (URL RPC)',
  noUrl: 'aucun ; choisissez-en un dans votre wallet',
  token: 'Jeton',
  steps: 'Configurer',
  go: 'Configurer mon wallet',
  again: 'Recommencer',
  step: {
    network: 'Ajouter le réseau',
    token: 'Afficher le jeton',
    funds: 'Obtenir de l’ether et des jetons de test',
  },
  means: {
    network: 'Le wallet connaît alors la chaîne et son nœud, et l’utilise pour cette page.',
    token: 'Le wallet affiche alors votre solde du jeton qui paie et garantit les tâches.',
    funds: (ether, tokens) =>
      `C’est une chaîne de développement sur votre propre machine. Son compte public de faucet vous envoie ${ether} ether et ${tokens} jetons. Ils n’ont de valeur nulle part ailleurs.`,
  },
  state: { waits: '', runs: 'Confirmez dans votre wallet, s’il le demande.', done: 'Fait.' },
  held: (ether, tokens) => `Le compte a maintenant ${ether} ether et ${tokens} jetons.`,
  noFaucet: 'le nœud de cette chaîne n’a pas de compte de faucet avec assez de jetons.',
  declinedToken: 'Le wallet n’affiche pas le jeton. Vous pouvez quand même l’utiliser.',
  next: 'Proposer une tâche',
}
