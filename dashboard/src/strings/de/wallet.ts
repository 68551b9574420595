import type * as en from '../wallet'

export const wallet: typeof en.wallet = {
  chain: (id) => `Consiliums Chain (${id})`,
  connect: 'Wallet verbinden',
  connectMeans: 'Ihre Schlüssel bleiben in der Wallet. Nichts wird gesendet, bevor Sie es dort bestätigen.',
  noWallet:
    'Dieser Browser hat keine Wallet. Installieren Sie eine, zum Beispiel MetaMask oder Rabby. Öffnen Sie diese Seite am Telefon im Browser Ihrer Wallet.',
  onPhone: 'Wenn Sie eine dieser Wallets auf diesem Telefon haben, öffnen Sie diese Seite in ihrem Browser:',
  openIn: (wallet) => `In ${wallet} öffnen`,
  injected: 'Die Wallet des Browsers',
  connected: 'Verbunden als',
  by: (wallet) => `durch ${wallet}`,
  switched: 'Die Wallet hat zu einem anderen Konto gewechselt. Formulare unten behalten Ihre Eingaben und gelten für',
  understood: 'Verstanden',
  disconnect: 'Trennen',
  noNode: 'diese Website hat keinen Chain-Knoten. Verbinden Sie eine Wallet.',
  wrongChain: (id) => `Die Wallet ist auf einer anderen Chain. Diese Contracts sind auf Chain ${id}.`,
  switchChain: 'Chain wechseln',
}

export const sending: typeof en.sending = {
  act: (act, of) => `${act} von ${of}: `,
  permitting: 'Signieren Sie die Freigabe in Ihrer Wallet. Das kostet nichts.',
  checking: 'Beim Contract wird geprüft, ob das gelingen wird …',
  signing: 'Bestätigen Sie in Ihrer Wallet.',
  pending: 'Gesendet. Die Chain wird abgewartet …',
  confirmed: (block, replaced) =>
    `Erledigt, in Block ${block}${replaced ? ', mit höherer Gebühr als zuerst gesendet' : ''}.`,
  slow: 'Noch keine Antwort. Die Wallet ist vielleicht gesperrt oder wartet in einem anderen Fenster oder auf einem anderen Gerät.',
  leave: 'Nicht länger warten',
  left: 'Diese Seite wartet nicht mehr, und nichts weiter wird angefragt. Die Wallet zeigt vielleicht noch eine Anfrage: Lehnen Sie sie dort ab. Wenn Sie sie bestätigen, wird sie gesendet.',
  partly: (act, of) =>
    `Die Wallet hat Schritt ${act} von ${of} doch noch gesendet, und die Chain hat ihn ausgeführt. Der Rest wurde nicht angefragt.`,
  stands: {
    staking: (amount) =>
      `Eine Freigabe besteht: Der Staking-Contract darf ${amount} Ihrer Token nehmen. Machen Sie mit demselben Betrag weiter, dann ist keine zweite Freigabe nötig, oder nehmen Sie sie zurück.`,
    tasks: (amount) =>
      `Eine Freigabe besteht: Der Aufgaben-Contract darf ${amount} Ihrer Token nehmen. Machen Sie mit demselben Betrag weiter, dann ist keine zweite Freigabe nötig, oder nehmen Sie sie zurück.`,
  },
  takeBack: 'Freigabe zurücknehmen',
  cancelled: 'Sie haben das in Ihrer Wallet abgebrochen. Es wird nicht ausgeführt.',
  replaced: 'Eine andere Ihrer Transaktionen hat diese ersetzt. Diese wird nicht ausgeführt.',
  outOfGas:
    'Die Transaktion ist fehlgeschlagen, sehr wahrscheinlich weil ihr das Gas ausging. Nur die Gebühr wurde bezahlt. Versuchen Sie es noch einmal mit dem Gaslimit, das die Wallet vorschlägt.',
}

export const refused: typeof en.refused = {
  declined: 'Sie haben das in Ihrer Wallet abgelehnt. Es wurde nicht gesendet.',
  noEther: 'Das Konto hat zu wenig Ether für das Gas. Senden Sie ihm etwas, und versuchen Sie es noch einmal.',
  wrongChain: 'Die Wallet ist auf einer anderen Chain. Wechseln Sie, und versuchen Sie es noch einmal.',
  noNode:
    'Der Chain-Knoten antwortet nicht. Versuchen Sie es später, oder verbinden Sie eine Wallet mit eigenem Knoten.',
  busy: 'Die Wallet ist gesperrt oder wartet auf Ihre Antwort auf eine frühere Anfrage. Öffnen Sie sie, antworten Sie dort, und versuchen Sie es noch einmal.',
  noAccount:
    'Die Wallet erlaubt dieser Seite das Konto nicht. Entsperren oder verbinden Sie sie neu, und versuchen Sie es noch einmal.',
  otherAccount:
    'In der Wallet ist inzwischen ein anderes Konto gewählt. Dies wurde nicht gesendet. Wählen Sie wieder das erste, oder machen Sie mit diesem weiter.',
  disconnected: 'Die Wallet hat keine Verbindung zur Chain. Prüfen Sie ihr Netzwerk, und versuchen Sie es noch einmal.',
  late: 'Die Chain hat nicht rechtzeitig geantwortet. Sehen Sie in der Wallet oder im Verlauf Ihres Kontos nach, bevor Sie es noch einmal versuchen.',
  code: (code) =>
    `Die Wallet oder ihr Chain-Knoten meldet einen Fehler (Code ${code}). Versuchen Sie es noch einmal, oder verwenden Sie eine andere Wallet oder einen anderen Knoten.`,
  reverted: (why) => `Der Contract lehnt das ab: ${why}`,
  other: (why) => `Das hat nicht funktioniert: ${why}`,
  unknown: 'Der Contract lehnt das ab',
  byName: {
    AmountIsZero: 'Der Betrag muss über null liegen',
    AlreadyRegistered: 'Dieses Konto ist bereits eine Node dieser Rolle',
    NodeUnknown: 'Diese Node gibt es nicht',
    CommissionTooHigh: 'Die Provision ist zu hoch',
    PoolWornOut: 'Slashes haben vom Stake dieser Node zu wenig übrig gelassen, um ihn zu erhöhen',
    StakeInsufficient: 'Die Node hat zu wenig freien Stake',
    SharesInsufficient: 'Sie haben bei dieser Node weniger als das',
    RequestUnknown: 'Diesen Unbonding-Antrag gibt es nicht, oder er wurde schon ausgezahlt',
    StillUnbonding: 'Das ist noch nicht fällig: Warten Sie bis dahin',
    StillBacking:
      'Eine gebundene Kaution braucht diesen Stake, bis ihre Aufgabe beendet ist: Nehmen Sie weniger heraus, oder warten Sie',
    OnlyWithdrawalAddress: 'Die Auszahlungsadresse ist ein anderes Konto: Nur sie kann hier handeln',
    WithdrawalAddressInvalid: 'An dieses Konto kann nicht gezahlt werden: Wählen Sie eine andere Adresse',
    PaidElsewhere:
      'Das wird an die Auszahlungsadresse der Node gezahlt und kann deshalb nicht von hier delegiert werden',
    NothingToClaim: 'Es gibt noch nichts abzuholen',
    ERC20InsufficientBalance: 'Das Konto hat zu wenige Token',
    ERC20InsufficientAllowance: 'Die Freigabe gilt für einen kleineren Betrag: Geben Sie neu frei',
    ERC20InvalidSpender: 'Dieser Contract kann keine Freigabe bekommen',
    ERC2612ExpiredSignature: 'Die Signatur ist abgelaufen: Signieren Sie neu',
    ERC2612InvalidSigner: 'Ein anderes Konto hat signiert: Signieren Sie neu',
    NotOperator: 'Das darf nur der Betreiber der Aufgabe',
    ParamsInvalid: 'Die Bedingungen der Aufgabe sind nicht gültig',
    ProposalsStopped: 'Diese Contracts nehmen keine neuen Aufgaben mehr an',
    TaskUnknown: 'Diese Aufgabe gibt es nicht',
    TaskFull: 'Die Aufgabe ist voll',
    AlreadyJoined: 'Dieses Konto ist bereits beigetreten',
    WrongPhase: 'Die Aufgabe ist in einer anderen Phase',
    AlreadyStopped: 'Die Aufgabe wurde gestoppt oder ist beendet',
    SafeERC20FailedOperation: 'Die Token ließen sich nicht übertragen',
  },
}
