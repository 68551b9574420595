import type * as en from '../setup'

export const setup: typeof en.setup = {
  title: 'Ihre Wallet',
  lead: 'Bringen Sie dieses Netzwerk und sein Token in die Wallet Ihres Browsers.',
  link: 'Wallet einrichten',
  network: 'Das Netzwerk',
  networkMeans: 'Der Knopf trägt das für Sie ein. Sie können es auch von Hand in eine Wallet eingeben.',
  name: 'Name',
  chain: 'Chain-ID',
  url: 'Chain-Knoten (RPC-URL)',
  noUrl: 'keiner; wählen Sie einen in Ihrer Wallet',
  token: 'Token',
  steps: 'Einrichten',
  go: 'Meine Wallet einrichten',
  again: 'Noch einmal',
  step: {
    network: 'Netzwerk hinzufügen',
    token: 'Token anzeigen',
    funds: 'Test-Ether und Token holen',
  },
  means: {
    network: 'Die Wallet kennt dann die Chain und ihren Knoten und verwendet sie für diese Seite.',
    token: 'Die Wallet zeigt dann Ihr Guthaben an dem Token, das Aufgaben bezahlt und absichert.',
    funds: (ether, tokens) =>
      `Das ist eine Entwicklungs-Chain auf Ihrem eigenen Rechner. Ihr öffentliches Faucet-Konto sendet Ihnen ${ether} Ether und ${tokens} Token. Sie haben nirgendwo sonst einen Wert.`,
  },
  state: { waits: '', runs: 'Bestätigen Sie in Ihrer Wallet, falls sie fragt.', done: 'Erledigt.' },
  held: (ether, tokens) => `Das Konto hat jetzt ${ether} Ether und ${tokens} Token.`,
  noFaucet: 'der Knoten dieser Chain hat kein Faucet-Konto mit genug Token.',
  declinedToken: 'Die Wallet zeigt das Token nicht an. Sie können es trotzdem verwenden.',
  next: 'Aufgabe vorschlagen',
}
