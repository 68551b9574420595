import type * as en from '../wallet'

export const wallet: typeof en.wallet = {
  chain: (id) => `Chaîne de Consilium (${id})`,
  connect: 'Connecter un wallet',
  connectMeans: 'Vos clés restent dans le wallet. Rien n’est envoyé avant que vous ne l’y confirmiez.',
  noWallet:
    'Ce navigateur n’a pas de wallet. Installez-en un, par exemple MetaMask ou Rabby. Sur un téléphone, ouvrez cette page dans le navigateur de votre wallet.',
  onPhone: 'Si vous avez l’un de ces portefeuilles sur ce téléphone, ouvrez cette page dans son navigateur :',
  openIn: (wallet) => `Ouvrir dans ${wallet}`,
  injected: 'Le wallet du navigateur',
  connected: 'Connecté comme',
  by: (wallet) => `par ${wallet}`,
  switched:
    'Le wallet est passé à un autre compte. Les formulaires ci-dessous gardent votre saisie, et continuent avec',
  understood: 'Compris',
  disconnect: 'Déconnecter',
  noNode: 'ce site n’a pas de nœud de la chaîne. Connectez un wallet.',
  wrongChain: (id) => `Le wallet est sur une autre chaîne. Ces contrats sont sur la chaîne ${id}.`,
  switchChain: 'Changer de chaîne',
}

export const sending: typeof en.sending = {
  act: (act, of) => `${act} sur ${of} : `,
  permitting: 'Signez l’approbation dans votre wallet. Cela ne coûte rien.',
  checking: 'Vérification auprès du contrat que ceci réussira…',
  signing: 'Confirmez dans votre wallet.',
  pending: 'Envoyé. En attente de la chaîne…',
  confirmed: (block, replaced) =>
    `Fait, au bloc ${block}${replaced ? ', avec des frais plus élevés que lors du premier envoi' : ''}.`,
  slow: 'Pas encore de réponse. Le wallet est peut-être verrouillé, ou attend dans une autre fenêtre ou sur un autre appareil.',
  leave: 'Ne plus attendre',
  left: 'Cette page n’attend plus, et rien d’autre n’est demandé. Le wallet montre peut-être encore une demande : refusez-la là-bas. Si vous la confirmez, elle est envoyée.',
  partly: (act, of) =>
    `Le wallet a finalement envoyé l’étape ${act} sur ${of}, et la chaîne l’a exécutée. Le reste n’a pas été demandé.`,
  stands: {
    staking: (amount) =>
      `Une approbation est en place : le contrat de staking peut prendre ${amount} de vos jetons. Continuez avec le même montant et aucune seconde approbation n’est demandée, ou reprenez-la.`,
    tasks: (amount) =>
      `Une approbation est en place : le contrat des tâches peut prendre ${amount} de vos jetons. Continuez avec le même montant et aucune seconde approbation n’est demandée, ou reprenez-la.`,
  },
  takeBack: 'Reprendre l’approbation',
  cancelled: 'Vous avez annulé ceci dans votre wallet. Ce ne sera pas exécuté.',
  replaced: 'Une autre de vos transactions a remplacé celle-ci. Celle-ci ne sera pas exécutée.',
  outOfGas:
    'La transaction a échoué, très probablement faute de gas. Seuls les frais ont été payés. Réessayez avec la limite de gas que propose le wallet.',
}

export const refused: typeof en.refused = {
  declined: 'Vous avez refusé ceci dans votre wallet. Ceci n’a pas été envoyé.',
  noEther: 'Le compte a trop peu d’ether pour payer le gas. Envoyez-lui-en, et réessayez.',
  wrongChain: 'Le wallet est sur une autre chaîne. Changez-en, et réessayez.',
  noNode: 'Le nœud de la chaîne ne répond pas. Réessayez plus tard, ou connectez un wallet qui a son propre nœud.',
  busy: 'Le wallet est verrouillé, ou attend votre réponse à une demande antérieure. Ouvrez-le, répondez-y, et réessayez.',
  noAccount:
    'Le wallet ne laisse pas cette page utiliser le compte. Déverrouillez-le ou connectez-le à nouveau, et réessayez.',
  otherAccount:
    'Le wallet a maintenant un autre compte sélectionné. Ceci n’a pas été envoyé. Sélectionnez à nouveau le premier, ou continuez avec celui-ci.',
  disconnected: 'Le wallet n’a pas de connexion à la chaîne. Vérifiez son réseau, et réessayez.',
  late: 'La chaîne n’a pas répondu à temps. Regardez le wallet ou l’historique de votre compte avant de réessayer.',
  code: (code) =>
    `Le wallet ou son nœud signale une erreur (code ${code}). Réessayez, ou utilisez un autre wallet ou un autre nœud.`,
  reverted: (why) => `Le contrat refuse ceci : ${why}`,
  other: (why) => `Cela n’a pas fonctionné : ${why}`,
  unknown: 'Le contrat refuse ceci',
  byName: {
    AmountIsZero: 'Le montant doit être supérieur à zéro',
    AlreadyRegistered: 'Ce compte est déjà un nœud de ce rôle',
    NodeUnknown: 'Ce nœud n’existe pas',
    CommissionTooHigh: 'La commission est trop élevée',
    PoolWornOut: 'Les slashes ont laissé trop peu du stake de ce nœud pour y ajouter',
    StakeInsufficient: 'Le nœud a trop peu de stake libre',
    SharesInsufficient: 'Vous avez moins que cela sur ce nœud',
    RequestUnknown: 'Cette demande d’unbonding n’existe pas, ou a déjà été retirée',
    StillUnbonding: 'L’échéance n’est pas encore atteinte : attendez jusque-là',
    StillBacking: 'Une caution bloquée a besoin de ce stake jusqu’à la fin de sa tâche : retirez moins, ou attendez',
    OnlyWithdrawalAddress: 'L’adresse de retrait est un autre compte : seule elle peut agir ici',
    WithdrawalAddressInvalid: 'Ce compte ne peut pas être payé : choisissez une autre adresse',
    PaidElsewhere: 'Ceci est versé à l’adresse de retrait du nœud, donc cela ne peut pas être délégué d’ici',
    NothingToClaim: 'Il n’y a encore rien à réclamer',
    ERC20InsufficientBalance: 'Le compte a trop peu de jetons',
    ERC20InsufficientAllowance: 'L’approbation porte sur un montant plus petit : approuvez à nouveau',
    ERC20InvalidSpender: 'Ce contrat ne peut pas recevoir d’approbation',
    ERC2612ExpiredSignature: 'La signature a expiré : signez à nouveau',
    ERC2612InvalidSigner: 'Un autre compte a fait la signature : signez à nouveau',
    NotOperator: 'Seul l’opérateur de la tâche peut faire cela',
    ParamsInvalid: 'Les conditions de la tâche ne sont pas valides',
    ProposalsStopped: 'Ces contrats n’acceptent plus de nouvelles tâches',
    TaskUnknown: 'Cette tâche n’existe pas',
    TaskFull: 'La tâche est complète',
    AlreadyJoined: 'Ce compte s’est déjà inscrit',
    WrongPhase: 'La tâche est dans une autre phase',
    AlreadyStopped: 'La tâche a été arrêtée, ou est terminée',
    SafeERC20FailedOperation: 'Les jetons n’ont pas pu être transférés',
  },
}
