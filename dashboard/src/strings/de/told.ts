import { pluralIn } from '../../lib/language'
import type * as en from '../told'

const plural = pluralIn('de')

export const told: typeof en.told = {
  title: 'Benachrichtigungen',
  lead: 'Sie können von Ereignissen erfahren, die in den beobachteten Aufgaben und Nodes Geld kosten: Slashes, versäumte Fristen, Runden ohne Bezahlung, endende Aufgaben, höhere Provisionen, fälliger Stake.',
  watch: 'Beobachten',
  watched: 'Nicht mehr beobachten',
  full: 'Die Liste ist voll: Entfernen Sie zuerst einen Eintrag.',
  list: 'Was Sie beobachten',
  listMeans: 'Die Liste ist in diesem Browser. Höchstens 50 Aufgaben und 50 Nodes.',
  empty: 'Noch nichts: Wählen Sie „Beobachten“ auf der Seite einer Aufgabe oder Node.',
  remove: 'Entfernen',
  here: 'In diesem Browser',
  hereMeans:
    'Benachrichtigungen kommen, solange eine Seite dieses Dashboards offen ist, auch in einem anderen Tab. Das braucht kein Konto und sendet niemandem etwas. Von einer Node kommen hier nur Ereignisse, die sie nennen; ein Server meldet auch die ihrer Aufgaben.',
  turnOn: 'Benachrichtigungen zeigen',
  turnOff: 'Keine zeigen',
  isOn: 'Benachrichtigungen werden gezeigt.',
  denied: 'Der Browser erlaubt dieser Website keine Benachrichtigungen. Ändern Sie das in seinen Einstellungen.',
  unsupported: 'Dieser Browser hat keine Benachrichtigungen für diese Seite. Sie braucht HTTPS.',
  away: 'Während Sie nicht da sind',
  awayMeans:
    'Dieser Server kann Ereignisse an einen Webhook oder eine E-Mail-Adresse senden. Ihre Wallet meldet sich an, und es wird keine Transaktion gesendet. Sie erfahren auch von Ihrem eigenen Konto.',
  open: 'Webhook oder E-Mail-Adresse setzen …',
  signIn: 'Anmelden',
  signing: 'Ihre Wallet bittet um eine Signatur …',
  statement: 'Anmelden, um von Ereignissen zu erfahren. Damit wird nichts bezahlt.',
  off: 'Dieser Server sendet nichts: Sein Betreiber hat es nicht eingerichtet.',
  kind: { https: 'Webhook', mailto: 'E-Mail' },
  hint: { https: 'https://…', mailto: 'name@example.org' },
  none: 'keine',
  state: {
    asked: {
      https: 'wartet auf die Antwort auf die Challenge',
      mailto: 'wartet, bis der Link in der Mail geöffnet wird',
    },
    confirmed: { https: 'wird benachrichtigt', mailto: 'wird benachrichtigt' },
    failed: { https: 'antwortet nicht: Setzen Sie ihn neu', mailto: 'nimmt keine Mail an: Setzen Sie sie neu' },
  },
  notOffered: 'Dieser Server sendet diese nicht.',
  set: 'Setzen',
  forget: 'Vergessen',
  secret: 'Das Geheimnis des Webhooks, einmal gezeigt. Seine Nachrichten werden damit nach Standard Webhooks signiert:',
  isSame: 'Der Server hat dieselbe Liste.',
  differs: 'Der Server hat eine andere Liste.',
  sendList: 'Liste dieses Browsers senden',
  takeList: 'Liste des Servers übernehmen',
  confirm: 'E-Mail-Adresse bestätigen',
  confirmMeans: 'Diese Adresse erfährt dann von Ereignissen, die ein Konto beobachtet.',
  confirmed: 'Die Adresse ist bestätigt.',
  stop: 'Mails beenden',
  stopMeans: 'Die Adresse wird dann vergessen.',
  stopped: 'Es kommen keine Mails mehr.',
  of: {
    slash: (account, tokens, why) => `${account} hat ${tokens} Token verloren: ${why}`,
    missed: (account) => `${account} hat sein Commitment nicht rechtzeitig abgegeben und setzt aus`,
    void: (why) => `Die Runde ist ungültig und zahlt nichts: ${why}`,
    rejected: (rejected, of) =>
      `${rejected} von ${of} Kohorten ${plural(rejected, 'wurde abgelehnt und verdient', 'wurden abgelehnt und verdienen')} nichts`,
    stopped: 'Der Betreiber hat die Aufgabe nach dieser Runde gestoppt',
    ended: 'Die Aufgabe ist beendet',
    wiped: (account) => `Ein Slash hat den ganzen Stake von ${account} genommen`,
    address: (account, to, at) => `Stake und Belohnungen von ${account} gehen ab ${at} an ${to}`,
    commission: (account, percent, at) => `${account} erhöht die Provision auf ${percent} am ${at}`,
  },
}
