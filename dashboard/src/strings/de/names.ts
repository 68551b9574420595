import { pluralIn } from '../../lib/language'
import type * as en from '../names'

const plural = pluralIn('de')

export const profile: typeof en.profile = {
  title: 'Profil',
  name: 'Name',
  institution: 'Einrichtung',
  country: 'Land',
  site: 'Website',
  contact: 'Kontakt',
  means: 'Dieses Konto hat diese Texte über sich signiert. Nur bestätigte Zeilen wurden geprüft. Signiert',
  verified: { domain: 'Bestätigte Domain', ens: 'Bestätigter ENS-Name' },
  asked: { domain: 'Eine Datei dort nennt diese Adresse. Gefragt', ens: 'Der Name führt zu dieser Adresse. Gefragt' },
  verifies: { domain: (host) => `${host} bestätigt diese Adresse`, ens: (name) => `ENS bestätigt ${name}` },
  verify: (account, file) =>
    `Um die Website zu bestätigen, schreiben Sie \`${account}\` in eine Zeile von \`${file}\`. Ein Server, der Namen bestätigt, fragt bald nach jeder Veröffentlichung, danach stündlich.`,
  open: 'Öffentliches Profil setzen …',
  lead: 'Alle Seiten zeigen diesen Namen neben Ihrer Adresse. Ihre Wallet signiert ihn, und es wird keine Transaktion gesendet. Lassen Sie ein Feld leer, um es nicht zu zeigen.',
  hints: {
    name: 'höchstens 60 Zeichen, in einer Schrift',
    institution: 'höchstens 100 Zeichen, in einer Schrift',
    country: 'zwei Buchstaben, zum Beispiel DE',
    site: 'https://…',
    contact: 'eine E-Mail-Adresse',
  },
  sign: 'Signieren und veröffentlichen',
  signing: 'Ihre Wallet bittet um eine Signatur …',
  done: 'Das Profil ist veröffentlicht.',
  contract: 'Dieses Konto ist ein Vertrag. Ein Profil braucht die Unterschrift des eigenen Schlüssels eines Kontos.',
}

export const search: typeof en.search = {
  title: 'Suche',
  lead: 'Eine Adresse oder ihr Anfang, ein Name, die Nummer einer Aufgabe oder eines Ensembles, oder der Hash einer Transaktion.',
  label: 'Suchen nach',
  none: 'Nichts gefunden.',
  found: (many) => (many === 20 ? 'Die ersten 20 Ergebnisse' : `${many} ${plural(many, 'Ergebnis', 'Ergebnisse')}`),
  transaction: 'Transaktion',
  ofAccount: 'ein Ereignis von',
  with: 'mit',
}
