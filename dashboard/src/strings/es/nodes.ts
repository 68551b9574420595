import { pluralIn } from '../../lib/language'
import type * as en from '../nodes'

const plural = pluralIn('es')

export const nodes: typeof en.nodes = {
  title: 'Nodos',
  role: 'Rol',
  days: 'Rendimiento de los últimos',
  daysOf: (n) => `${n} días`,
  sort: 'Orden',
  none: 'Ningún nodo tiene este rol.',
  yieldMeans:
    'El rendimiento es lo que ganó un token delegado en este tiempo, tras comisión y slashes. No es una tasa anual. Los rendimientos futuros pueden ser menores, o pérdidas. Los nodos nuevos no lo muestran y van al final.',
  compare: 'Comparar',
  compareOf: (account) => `Comparar ${account}`,
  compareGo: (n) => `Comparar ${n} nodos`,
  compareMost: 'Elija de dos a cuatro nodos para comparar.',
  bySort: {
    yield: 'Mayor rendimiento',
    assets: 'Más stake',
    commission: 'Menor comisión',
    rewarded: 'Más recompensas',
    burnt: 'Menos slashes',
  },
}

export const decide: typeof en.decide = {
  title: 'Antes de delegar',
  rate: (days) => `Rendimiento, ${days} días`,
  aYear: (rate) => `${rate} al año, simple, redondeado hacia abajo`,
  over: (duration) => `solo en ${duration}`,
  soFar: (rate, duration) => `${rate} en ${duration}: muy poco para una tasa`,
  isNew: 'Nuevo',
  noRate: 'nuevo: sin tasa anual',
  newMeans:
    'El primer stake tiene menos de 30 días, o se pagaron menos de 5 rondas. Por eso no se muestra el rendimiento.',
  worst: 'Peor pérdida',
  all: 'Todo',
  locked: (part, fault) => `El ${part} está ahora en fianzas. Una sola falta quita hasta el ${fault} de una fianza.`,
  slashes: 'Slashes hasta ahora',
  never: 'Ninguno',
  met: 'Plazos cumplidos',
  noneDue: 'Aún ninguno',
  metOf: (made, due) => `${made} de ${due}`,
  inRounds: (n) => plural(n, 'en su última ronda', `en sus últimas ${n} rondas`),
  age: 'Antigüedad de su stake',
  unstaked: 'Aún sin stake',
  paid: (n) => `${n} ${plural(n, 'ronda pagada', 'rondas pagadas')}`,
  commissionCap: (notice) => `puede subir al 100 %, ${notice} después de un aviso`,
  own: 'Stake propio del dueño',
  ownPart: (part) => `${part} del stake`,
  unlock: 'Disponible',
  unlockMeans: (day) => `después de retirar la delegación: ${day} como muy pronto`,
  period: 'un periodo de unbonding',
}

export const compare: typeof en.compare = {
  title: 'Comparar nodos',
  lead: 'Las filas son los datos para decidir. Los rendimientos son pasados, tras comisión y slashes. Los rendimientos futuros pueden ser menores, o pérdidas.',
  decision: 'Dato',
  none: 'No hay ningún nodo elegido. Elija de dos a cuatro en la lista de nodos.',
  back: 'A la lista de nodos',
}

export const record: typeof en.record = {
  title: 'Historial de cumplimiento',
  means: (rounds) =>
    `De la cadena, en las últimas ${rounds} rondas terminadas de sus tareas. Un puesto es secreto hasta que su evaluador se compromete con puntuaciones.`,
  none: 'Aún no ha terminado ninguna ronda de sus tareas.',
  duty: {
    commit: 'Comprometerse con una actualización',
    upload: 'Subir la actualización',
    reveal: 'Revelar las puntuaciones',
    fix_survivors: 'Fijar los supervivientes',
    publish: 'Publicar las sumas',
    disclose: 'Divulgar los señuelos',
  },
  accepted: { hospital: 'Sumas aceptadas', voter: '', aggregator: 'Rondas liquidadas' },
  outOf: (n, all) => `${n} de ${all}`,
  median: 'Puntuación mediana de sus cohortes',
  allMedian: (score) => `${score} de todas las cohortes`,
  seats: 'Puestos ocupados',
  distance: 'Distancia media a la mediana',
  decoys: 'Señuelos distinguidos',
  lastAct: 'Último acto en la cadena',
  stake: 'Stake a lo largo del tiempo',
  rewards: 'Recompensas y slashes a lo largo del tiempo',
}

export const node: typeof en.node = {
  tokens: 'tokens',
  onePeriod: 'El primer día aún no ha terminado.',
  stake: 'Stake',
  stakeMeans:
    'Todos los tokens detrás de este nodo. Un slash quita una parte de todos, también de los tokens en unbonding.',
  free: 'Libre para nuevas fianzas',
  next: (bps, when) => `${bps} desde ${when}`,
  earned: 'ganado',
  lost: 'perdido por slashes',
  history: 'Valor de una participación a lo largo del tiempo',
  worthUnit: 'tokens por participación',
  noHistory: 'Nadie ha puesto stake en este nodo todavía.',
  flat: 'El valor nunca ha cambiado: ningún slash ha alcanzado este nodo.',
  slashes: 'Slashes',
  noSlashes: 'Nunca tuvo un slash.',
  tasks: 'Tareas',
  noTasks: 'Este nodo no se ha unido a ninguna tarea.',
  ranks: 'Arena',
  ranked: (best, firsts, rounds) =>
    best === null ? `sin rango en ${rounds} rondas` : `mejor rango ${best}; primero en ${firsts} de ${rounds} rondas`,
  delegators: 'Delegadores',
  noDelegators: 'Solo el propio nodo.',
  paid: 'Rondas con una recompensa o un slash',
  since: 'desde',
}

export const account: typeof en.account = {
  title: 'Cuenta',
  delegations: 'Delegaciones',
  none: 'Esta cuenta no tiene delegaciones.',
  unbonding: 'Unbonding',
  noUnbonding: 'No hay nada en unbonding.',
  history: 'Historial',
  noHistory: 'Esta cuenta aún no tiene historial.',
  csv: 'Descargar como CSV',
  shares: (n) => `${n} participaciones`,
  wiped: 'un slash se lo llevó todo',
  look: 'Consultar una cuenta',
  lookHint: '0x y 40 cifras hexadecimales',
  lookBad: 'Esto no es una cuenta. Una cuenta es 0x y 40 cifras hexadecimales.',
  show: 'Mostrar',
}
