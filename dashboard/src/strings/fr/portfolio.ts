import { pluralIn } from '../../lib/language'
import type * as en from '../portfolio'

const plural = pluralIn('fr')

export const delegate: typeof en.delegate = {
  title: 'Déléguer à ce nœud',
  open: 'Déléguer…',
  held: 'Déjà délégué à ce nœud',
  whatIf: 'Estimation',
  part: 'Votre part du stake qui gagne',
  earned: (days) => `Il aurait gagné ${plural(days, 'le dernier jour', `pendant les ${days} derniers jours`)}`,
  aYear: 'Au même taux, en un an',
  atRisk: 'Il peut perdre',
  atMost: (now) => `la totalité ; ${now} si toutes les cautions actuelles étaient slashées`,
  unlock: 'Il revient',
  unlockAt: (period, day) => `${period} après le retrait de la délégation, pas avant le ${day}`,
  commission: 'Commission',
  gas: 'Gas',
  ether: (amount) => `environ ${amount} ether au prix actuel`,
  noGas: 'Le nœud de la chaîne ne donne pas d’estimation.',
  promises:
    'Les rendements sont passés, arrondis vers le bas et non composés. Les récompenses futures peuvent être plus basses. Un slash prend la même part du stake de chaque délégateur, aussi pendant l’unbonding.',
  approve: 'Approbation',
  bySignature: 'Par une signature : une transaction',
  byTransaction: 'Par une approbation : deux transactions',
  contractWallet: 'Ce compte est un contrat et n’a pas de clé pour signer, donc l’approbation est une transaction.',
  go: 'Déléguer',
}

export const portfolio: typeof en.portfolio = {
  title: 'Portefeuille',
  lead: 'Stake, récompenses et slashes de votre compte, lus dans le contrat lui-même.',
  fromEvents:
    'L’API ne répond pas, donc ceci est lu sur la chaîne seule. L’historique et son export reviennent avec l’API.',
  staked: 'En stake',
  claimable: 'Récompenses acquises',
  unbonding: 'Unbonding',
  unbondingMeans:
    'Le stake en unbonding ne gagne rien. Les slashes peuvent encore l’atteindre jusqu’à ce que vous le retiriez ou le déléguiez à nouveau. Les deux sont possibles à son échéance.',
  holdings: 'Délégations',
  none: 'Vous n’avez pas de délégations. Choisissez un nœud.',
  claim: 'Réclamer',
  claimAll: 'Tout réclamer',
  unbond: 'Retirer la délégation',
  withdraw: 'Retirer',
  redelegate: 'Redéléguer',
  redelegateMeans: (amount) =>
    `${amount} jetons sont arrivés à échéance. Vous pouvez les déléguer à un autre nœud sans les retirer d’abord.`,
  overWorth: 'C’est plus que ce que vous y avez délégué.',
  howMuch: (all) => `Montant, sur ${all}`,
}
