import type * as en from '../withdrawal'

export const withdrawal: typeof en.withdrawal = {
  title: 'Adresse de retrait',
  itself: 'le nœud lui-même',
  then: (when) => `à partir du ${when} :`,
  open: 'Agir comme cette adresse…',
  notYours: 'Seule l’adresse de retrait peut agir ici :',
  first:
    'Désormais, le stake propre et les récompenses du nœud sont versés à cette adresse. Un voleur de la clé du nœud ne peut pas les prendre. Ensuite, seule cette adresse peut changer cela, donc sa clé ne doit pas être perdue : prenez un portefeuille matériel ou à signatures multiples.',
  change: (period) =>
    `Le changement vaut après la période d’unbonding (${period}). D’ici là, cette adresse est payée et peut annuler le changement.`,
  field: 'Adresse à payer',
  bad: 'Ce n’est pas une adresse, ou un caractère est faux.',
  set: 'Fixer l’adresse de retrait',
  keep: 'Annuler le changement',
  means:
    'Ces actions portent sur le stake propre du nœud et paient cette adresse. Elles n’ont pas besoin de la clé du nœud.',
}
