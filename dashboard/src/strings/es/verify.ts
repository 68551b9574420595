import { formatFixed } from '../../lib/amounts'
import { pluralIn } from '../../lib/language'
import type * as en from '../verify'

const plural = pluralIn('es')

export const verify: typeof en.verify = {
  steps: 'Pasos',
  state: { holds: 'correcto', fails: 'FALLA', waits: 'aún no', skipped: 'sin comprobar', running: 'en curso…' },
  mark: { holds: '✓', fails: '✗', waits: '…', skipped: '–', running: '›' },
  node: 'Nodo de la cadena',
  nodeOfSite: (host) => `el nodo que nombra este sitio (${host})`,
  nodeOfWallet: (name) => `el nodo de su wallet (${name})`,
  wallet: 'en el navegador',
  again: 'Verificar de nuevo',
  noNode:
    'Este sitio no nombra ningún nodo de la cadena, y el navegador no tiene una wallet con uno. Conecte una wallet, o use la línea de comandos de abajo.',
  asking: 'Leyendo de la cadena el registro de la ronda',
  verdict: {
    running: 'Verificando…',
    holds: 'Todas las comprobaciones son correctas.',
    unchecked: 'No verificable: esto no dice nada de la ronda, ni bueno ni malo. Vea los pasos.',
    partly: 'Ninguna comprobación falla, pero algunas no se pudieron hacer. Vea los pasos.',
    fails: 'Una comprobación FALLA. No confíe en esta ronda hasta que sepa el motivo.',
  },
  took: (seconds) => `Tardó ${formatFixed(seconds, 1)} s.`,
  not: 'Estas comprobaciones no prueban cómo entrenaron los hospitales, ni que las puntuaciones y los pagos sean correctos. Confían en el nodo de la cadena para el estado de la cadena. Confían en este sitio para las direcciones de los contratos y para el código de las comprobaciones. Para la comprobación completa, ejecute esto en su propia máquina:',
  command: (task, round) => `consilium verify ${task} ${round}`,

  chain: 'El nodo está en la cadena y tiene los contratos',
  chainHolds: (id, contract, node) =>
    `El nodo es ${node}, en la cadena ${id}, con código en ${contract}. Compare esta dirección con la de otra fuente.`,
  wrongChain: (given, wanted) =>
    `El nodo está en la cadena ${given}, pero los contratos están en la cadena ${wanted}. Cambie la red de la wallet.`,
  noCode: (contract) => `No hay ningún contrato en ${contract} en esta cadena.`,
  unreachable: (node, why) => `No se pudo preguntar esto a ${node}: ${why}. Elija otro nodo, o inténtelo más tarde.`,

  record: 'El registro de la ronda está completo',
  recordHolds: (events, block, hospitals, survivors) =>
    `Leído de ${events} eventos, y del contrato en el bloque ${block}: hospitales comprometidos: ${hospitals}; en las sumas: ${survivors}.`,
  recordUnread: (why) => `No se pudo leer el registro, así que no se comprobó nada de él: ${why}`,
  noAnswer: 'el nodo no responde',
  code: (code) => `el nodo informa de un fallo (código ${code})`,
  manyQueries: (most) =>
    `el nodo responde por tan pocos bloques a la vez que ${most} consultas no bastan. Use otro nodo.`,
  noTask: (task) => `El contrato no tiene la tarea ${task}.`,
  notBegun: 'Esta ronda no ha empezado.',
  notFixed: 'Los supervivientes aún no están fijados.',
  noPoints: (hospital, given, wanted) =>
    `Los eventos tienen ${given} compromisos de ${hospital}. Una suma de ${wanted} blobs necesita ${wanted}.`,
  notCommitted: (hospital) => `${hospital} está en las sumas, pero no tiene compromiso en el contrato.`,
  void: 'La ronda es nula, así que no cambia el modelo.',
  noCohorts: 'Ninguna cohorte de esta ronda tiene una suma.',

  decoys: 'Las sumas con el signo invertido se fijaron antes de la publicación',
  decoysHolds: 'La semilla coincide con su compromiso, y da las mismas sumas con el signo invertido que la cadena.',
  decoysWait: 'El agregador las divulga tras las revelaciones.',
  decoysUnset: 'El agregador aún no se ha comprometido con ellas.',
  noSeed:
    'Ninguna transacción al contrato muestra la semilla, porque otro contrato la pasó. Solo el contrato la ha comprobado.',
  manyBlocks: (blocks) =>
    `La semilla está en uno de ${blocks} bloques, demasiados para que los lea una página. Solo el contrato la ha comprobado.`,
  flippedWrong: (cohort, onChain) =>
    `La cohorte ${cohort} ${onChain ? '' : 'no '}tiene el signo invertido en la cadena, pero ${onChain ? 'no ' : 'sí '}según la semilla.`,

  negatedDelta: 'El delta negado de las sumas con el signo invertido',
  negatedDeltaUnused: 'Ninguna suma de esta ronda tenía el signo invertido, así que no hay delta negado.',
  negatedDeltaFirst: 'La primera ronda no tiene rondas anteriores, y su delta negado es cero.',
  negatedDeltaWrong: (blob) => `Blob ${blob}: el delta negado no se sigue de las rondas anteriores.`,
  negatedDeltaHolds: (rounds) =>
    `Se derivó de nuevo de todas las sumas de ${plural(rounds, 'la ronda anterior', `las ${rounds} rondas anteriores`)}. Cada suma tiene el hash que tiene el contrato.`,
  negatedDeltaReading: (round, last) => `Leyendo las sumas de la ronda ${round} de ${last}.`,
  negatedDeltaBeyond:
    'Coincide. Pero un hospital usó carriles más allá de los números de una actualización, y solo el servidor dice cuántos números hay. La línea de comandos deriva este número del archivo de tarea.',
  negatedDeltaLater:
    'El agregador se comprometió con él antes de la publicación. Hay demasiadas rondas anteriores para leerlas aquí. El comité lo comprobó, y la línea de comandos puede comprobarlo de nuevo.',
  inRound: (round, cohort, what) => `Ronda ${round}, cohorte ${cohort}: ${what}`,

  sum: (cohort) => `Cohorte ${cohort}: los compromisos suman la suma del contrato`,
  sumHolds: (survivors, weight, blobs) =>
    `Los compromisos de ${survivors} ${plural(survivors, 'hospital', 'hospitales')} tienen los hashes dados de antemano. Con un peso total de ${weight} dan ${plural(blobs, 'su hash', `los hashes de sus ${blobs} blobs`)}.`,
  sumFlipped: 'Se publicó con el signo invertido, para poner a prueba al comité.',
  sumWaits: (blob) => `Blob ${blob}: el contrato aún no lo ha sumado.`,
  sumUndisclosed: (blob) =>
    `Blob ${blob}: esto no se puede comparar antes de que el agregador divulgue qué sumas tienen el signo invertido.`,
  sumUnshown: (blob) =>
    `Blob ${blob}: ninguna transacción al contrato muestra sus factores de cegado, y sin ellos cualquier suma coincide. Solo el contrato lo ha comprobado.`,
  sumDiffers: (blob, held, given) =>
    `Blob ${blob}: el contrato tiene ${held}, pero los compromisos de los supervivientes dan ${given}.`,
  eventDiffers: (blob, held, event) =>
    `Blob ${blob}: el contrato tiene ${held}, pero el evento de la publicación dice ${event}.`,
  pointUnshown: (blob, hospital) => `Blob ${blob}: ningún evento muestra el compromiso de ${hospital}.`,
  pointDiffers: (blob, hospital) =>
    `Blob ${blob}: el compromiso mostrado de ${hospital} no tiene el hash con el que se comprometió.`,
  dropped: (cohort) => `La cohorte ${cohort} no tiene suma: el agregador la descartó.`,
  malformed: (why) => `Los eventos tienen un compromiso inválido: ${why}`,
  sums: 'Las sumas',
  crash: 'Las propias comprobaciones',
  noWorker: 'El navegador no pudo iniciarlas.',

  blob: (cohort) => `Cohorte ${cohort}: los blobs publicados son esa suma`,
  blobHolds: (blobs) =>
    plural(
      blobs,
      'Se obtuvo el blob y se calculó de nuevo su compromiso, que da el mismo hash.',
      `Se obtuvieron ${blobs} blobs y se calcularon de nuevo sus compromisos, que dan los mismos hashes.`,
    ),
  blobWaits: (blob) => `El blob ${blob} aún no está publicado.`,
  blobMissing: (blob, hash) => `Blob ${blob}: esta réplica no tiene ${hash}.`,
  blobUnreachable: (blob, why) => `Blob ${blob}: la réplica no responde: ${why}`,
  blobLength: (blob, bytes) => `Blob ${blob}: tiene ${bytes} bytes, y un blob tiene 131072.`,
  blobScalar: (blob, at) =>
    `Blob ${blob}: esto no es un blob, porque el elemento de cuerpo ${at} no está por debajo del orden del grupo.`,
  blobDiffers: (blob, held, given) =>
    `Blob ${blob}: el contrato tiene ${held}, pero el blob de la réplica da el compromiso ${given}. Está dañado o fue manipulado.`,
  ceremony: 'Los puntos de la ceremonia KZG de Ethereum',
  ceremonyUnread: (why) => `No se pudieron cargar de este sitio: ${why}`,
  ceremonyFails: (why) => `Este sitio da otros puntos: ${why}`,
  otherPoints: 'los puntos no son los de la ceremonia de Ethereum: su SHA-256 difiere',
  notPoint: (raw) => `${raw} no es un punto de G1 de BLS12-381`,
  ceremonyHolds: '4096 puntos, con el SHA-256 de la ceremonia.',
}
