import type * as en from '../earnings'

export const earnings: typeof en.earnings = {
  title: 'Ganado',
  means:
    'Un mes cuenta las recompensas que usted reclamó en él, según UTC. Los slashes están en el valor del stake, no aquí. La exportación tiene todas las entradas.',
  month: 'Mes',
  share: 'Comparado',
  unclaimed: 'Consolidado, sin reclamar',
  inAll: 'Valor total',
  inAllMeans: 'Stake, stake en unbonding y recompensas consolidadas',
  earned: 'Ganado en total',
  earnedMeans: 'Reclamado y consolidado',
  vesting: 'Aún sin consolidar',
  until: 'todo antes de',
  left: (request) => `Tiempo que lleva en unbonding la solicitud ${request}`,
}

export const restake: typeof en.restake = {
  title: 'Reclamar y volver a delegar',
  steps: (amount, node) => [
    `El paso 1 reclama sus recompensas de ${node}: al menos ${amount} tokens.`,
    `El paso 2 vuelve a delegar exactamente ${amount} tokens en ${node}.`,
  ],
  means:
    'Su wallet pregunta tres veces: por cada paso, y por una firma que aprueba este importe. Las recompensas que se consoliden entretanto quedan en su wallet.',
  less: (amount) =>
    `Solo se reclamaron ${amount} tokens, porque alguien reclamó entretanto con esta cuenta. No se delegó nada.`,
  stands: (amount) => `El paso 1 está hecho: ${amount} tokens reclamados están en su wallet. No están delegados.`,
  goOn: 'Delegarlos ahora',
  keep: 'Conservarlos',
}

export const pick: typeof en.pick = {
  none: 'Elija un nodo',
  other: 'Otra dirección…',
  address: 'Dirección del nodo',
  rate: (rate) => `${rate} en 30 días`,
  option: (node, rate, commission) => `${node}: ${rate}, comisión ${commission}`,
}
