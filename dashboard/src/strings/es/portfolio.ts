import { pluralIn } from '../../lib/language'
import type * as en from '../portfolio'

const plural = pluralIn('es')

export const delegate: typeof en.delegate = {
  title: 'Delegar en este nodo',
  open: 'Delegar…',
  held: 'Ya delegado en este nodo',
  whatIf: 'Estimación',
  part: 'Su parte del stake que gana',
  earned: (days) => `Habría ganado en ${plural(days, 'el último día', `los últimos ${days} días`)}`,
  aYear: 'Con la misma tasa, en un año',
  atRisk: 'Puede perder',
  atMost: (now) => `todo; ${now} si hubiera un slash de todas las fianzas actuales`,
  unlock: 'Vuelve',
  unlockAt: (period, day) => `${period} después de retirar la delegación, no antes del ${day}`,
  commission: 'Comisión',
  gas: 'Gas',
  ether: (amount) => `unos ${amount} ether al precio actual`,
  noGas: 'El nodo de la cadena no da ninguna estimación.',
  promises:
    'Los rendimientos son del pasado, redondeados hacia abajo y sin capitalizar. Las recompensas futuras pueden ser menores. Un slash quita la misma parte del stake de cada delegador, también durante el unbonding.',
  approve: 'Aprobación',
  bySignature: 'Por una firma: una transacción',
  byTransaction: 'Por una aprobación: dos transacciones',
  contractWallet:
    'Esta cuenta es un contrato y no tiene una clave con la que firmar, así que la aprobación es una transacción.',
  go: 'Delegar',
}

export const portfolio: typeof en.portfolio = {
  title: 'Cartera',
  lead: 'Stake, recompensas y slashes de su cuenta, leídos del propio contrato.',
  fromEvents:
    'La API no responde, así que esto se lee solo de la cadena. El historial y su exportación vuelven con la API.',
  staked: 'En stake',
  claimable: 'Recompensas consolidadas',
  unbonding: 'Unbonding',
  unbondingMeans:
    'El stake en unbonding no gana nada. Los slashes aún pueden alcanzarlo hasta que lo retire o lo vuelva a delegar. Puede hacer ambas cosas cuando haya vencido.',
  holdings: 'Delegaciones',
  none: 'No tiene delegaciones. Elija un nodo.',
  claim: 'Reclamar',
  claimAll: 'Reclamar todo',
  unbond: 'Retirar la delegación',
  withdraw: 'Retirar',
  redelegate: 'Delegar de nuevo',
  redelegateMeans: (amount) => `${amount} tokens han vencido. Puede delegarlos en otro nodo sin retirarlos antes.`,
  overWorth: 'Es más de lo que delegó allí.',
  howMuch: (all) => `Importe, de ${all}`,
}
