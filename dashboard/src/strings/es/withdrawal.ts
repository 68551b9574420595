import type * as en from '../withdrawal'

export const withdrawal: typeof en.withdrawal = {
  title: 'Dirección de retirada',
  itself: 'el propio nodo',
  then: (when) => `desde ${when}:`,
  open: 'Actuar como esta dirección…',
  notYours: 'Aquí solo puede actuar la dirección de retirada:',
  first:
    'Desde ahora, el stake propio y las recompensas del nodo se pagan a esta dirección. Quien robe la clave del nodo no puede llevárselos. Después, solo esta dirección puede cambiarlo, así que su clave no debe perderse: use un monedero de hardware o de firmas múltiples.',
  change: (period) =>
    `El cambio vale tras el período de unbonding (${period}). Hasta entonces se paga a esta dirección, y ella puede anular el cambio.`,
  field: 'Dirección a la que se paga',
  bad: 'Esto no es una dirección, o contiene un carácter equivocado.',
  set: 'Fijar la dirección de retirada',
  keep: 'Anular el cambio',
  means: 'Estas acciones afectan al stake propio del nodo y pagan a esta dirección. No necesitan la clave del nodo.',
}
