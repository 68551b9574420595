import type * as en from '../withdrawal'

export const withdrawal: typeof en.withdrawal = {
  title: 'Auszahlungsadresse',
  itself: 'die Node selbst',
  then: (when) => `ab ${when}:`,
  open: 'Als diese Adresse handeln …',
  notYours: 'Hier kann nur die Auszahlungsadresse handeln:',
  first:
    'Ab jetzt gehen der eigene Stake und die Belohnungen der Node an diese Adresse. Wer den Schlüssel der Node stiehlt, kann sie nicht nehmen. Nur diese Adresse kann das später ändern. Ihr Schlüssel darf deshalb nicht verloren gehen: Nehmen Sie eine Hardware-Wallet oder eine Multi-Signatur-Wallet.',
  change: (period) =>
    `Die Änderung gilt nach der Unbonding-Frist (${period}). Bis dahin wird an diese Adresse gezahlt, und sie kann die Änderung zurücknehmen.`,
  field: 'Adresse, an die gezahlt wird',
  bad: 'Das ist keine Adresse, oder ein Zeichen darin ist falsch.',
  set: 'Auszahlungsadresse setzen',
  keep: 'Änderung zurücknehmen',
  means:
    'Diese Aktionen betreffen den eigenen Stake der Node und zahlen an diese Adresse. Sie brauchen den Schlüssel der Node nicht.',
}
