/** Texts about the account to which a node's own stake and rewards are paid. */
export const withdrawal = {
  title: 'Withdrawal address',
  itself: 'the node itself',
  then: (when: string) => `from ${when}:`,
  open: 'Act as this address…',
  notYours: 'Only the withdrawal address can act here:',
  first:
    'From now on, the node’s own stake and rewards are paid to this address. A thief of the node’s key cannot take them. Only this address can change that later, so its key must not be lost: take a hardware wallet or a multi-signature wallet.',
  change: (period: string) =>
    `The change counts after the unbonding period (${period}). Until then this address is paid, and can take the change back.`,
  field: 'Address to pay',
  bad: 'This is not an address, or a character of it is wrong.',
  set: 'Set withdrawal address',
  keep: 'Take the change back',
  means: 'These act on the node’s own stake, and pay this address. They work without the node’s key.',
}
