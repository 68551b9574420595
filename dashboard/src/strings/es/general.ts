import { point } from '../../lib/amounts'
import { pluralIn } from '../../lib/language'
import type * as en from '../general'

const plural = pluralIn('es')

export const name = 'Consilium'
export const skip = 'Ir al contenido'
export const theme: typeof en.theme = { label: 'Tema', system: 'Sistema', light: 'Claro', dark: 'Oscuro' }
export const language = 'Idioma'
export const times: typeof en.times = {
  day: 'd',
  hour: 'h',
  minute: 'min',
  second: 's',
  now: 'ahora',
  ahead: (duration) => `en ${duration}`,
  ago: (duration) => `hace ${duration}`,
}
export const nav: typeof en.nav = {
  overview: 'Resumen',
  tasks: 'Tareas',
  market: 'Mercado',
  nodes: 'Nodos',
  portfolio: 'Cartera',
  propose: 'Proponer',
  desk: 'Mi nodo',
  wallet: 'Wallet',
  search: 'Buscar',
  label: 'Principal',
  crumbs: 'Ruta a esta página',
}
export const live: typeof en.live = {
  connecting: 'conectando…',
  live: 'en vivo',
  lost: 'sin eventos en vivo: reintentando',
}
export const footer: typeof en.footer = (block, behind) =>
  block === null
    ? 'Aún no se ha indexado ningún bloque.'
    : `Completo hasta el bloque ${block}${behind ? `, ${behind} ${plural(behind, 'bloque', 'bloques')} por detrás de la cadena` : ''}. Usted mismo puede comprobar cada ronda.`
export const loading = 'Cargando'
export const unread = 'aún no se sabe'
export const none = 'ninguno'
export const more = 'Mostrar más'
export const moreRows: typeof en.moreRows = (left) => `Mostrar más (quedan ${left})`
export const retry = 'Reintentar'
export const cancel = 'Cancelar'
export const command = 'Comando'
export const copy = 'Copiar'
export const copied = 'Copiado'
export const explorer = 'Explorador'
export const tokens = 'tokens'
export const unreachable = 'La API no responde. Esta página puede estar desactualizada. Reintenta por sí sola.'
export const faulty: typeof en.faulty = (detail) => `No se pudo cargar: ${detail}`
export const notFound = 'Esta página no existe.'
export const home = 'Al resumen'
export const crashed = 'Un error del panel detuvo esta página. Vuelva a cargarla.'
export const tableOf = 'Mostrar como tabla'
export const unitBy: typeof en.unitBy = (unit, across) => `${unit}, por ${across.toLowerCase()}`
export const both: typeof en.both = (time, utc) => `${time} (${utc})`
export const notAmount = `Esto no es un importe. Introduzca cifras, con «${point}» antes de los decimales de un token.`
export const overBalance = 'Es más de lo que tiene su wallet.'
export const balance = 'En su wallet'
export const amount = 'Importe, en tokens'
export const role: typeof en.role = { hospital: 'Hospital', voter: 'Evaluador', aggregator: 'Agregador' }
export const roles: typeof en.roles = { hospital: 'Hospitales', voter: 'Evaluadores', aggregator: 'Agregadores' }
export const phase: typeof en.phase = {
  none: 'Ninguna',
  joining: 'Inscripción',
  forming: 'Formación de cohortes',
  committing: 'Compromisos',
  uploading: 'Subida',
  publishing: 'Publicación',
  disputing: 'Disputa',
  drawing: 'Sorteo de puestos',
  scoring: 'Puntuación',
  revealing: 'Revelación',
  disclosing: 'Divulgación de señuelos',
  settling: 'Liquidación',
  ended: 'Terminada',
}
export const phaseMeans: typeof en.phaseMeans = {
  none: '',
  joining: 'Los hospitales, los evaluadores y el agregador bloquean sus fianzas.',
  forming: 'La baliza asigna los hospitales a cohortes.',
  committing: 'Los hospitales entrenan y se comprometen con sus actualizaciones.',
  uploading: 'Los hospitales suben sus actualizaciones enmascaradas al agregador.',
  publishing: 'El agregador publica la suma de cada cohorte. La cadena la compara con los compromisos.',
  disputing: 'Una cohorte no tiene una suma válida. La disputa encuentra al tramposo.',
  drawing: 'La baliza sortea el comité.',
  scoring: 'El comité puntúa las sumas con datos reservados y se compromete con las puntuaciones.',
  revealing: 'El comité revela sus puntuaciones.',
  disclosing: 'El agregador divulga qué sumas tenían el signo invertido para poner a prueba al comité.',
  settling: 'El contrato paga recompensas y aplica slashes.',
  ended:
    'La tarea ha terminado. El operador recupera el pago de las rondas que no se jugaron. El pago que las rondas no ganaron se quema.',
}
export const outcome: typeof en.outcome = { pending: 'En curso', settled: 'Liquidada', void: 'Nula' }
export const voidReason: typeof en.voidReason = {
  none: '',
  too_few_hospitals: 'se comprometieron muy pocos hospitales',
  survivors_not_fixed: 'el agregador no fijó los supervivientes',
  not_published: 'el agregador no publicó las sumas',
  too_few_scores: 'revelaron muy pocos miembros del comité',
  not_disclosed: 'el agregador no divulgó sus señuelos',
  mismatched: 'las sumas publicadas difieren de las sumas que se puntuaron',
  no_sums: 'ninguna cohorte tuvo una suma válida',
  no_randomness: 'la baliza no dio ningún valor en una semana, así que la tarea terminó',
}
export const reason: typeof en.reason = {
  harmful_cohort: 'su cohorte empeoró el modelo',
  withheld_upload: 'no subió la actualización con la que se comprometió',
  false_upload: 'subió una actualización distinta de su compromiso',
  not_revealed: 'no reveló sus puntuaciones',
  failed_decoy: 'puntuó como verdadera una suma con el signo invertido',
  not_published: 'no publicó las sumas',
  not_disclosed: 'no divulgó qué sumas tenían el signo invertido',
  mismatched: 'la mayoría de los evaluadores dice que publicó sumas erróneas o nombró a los hospitales equivocados',
}
export const kind: typeof en.kind = {
  reward: 'Recompensa',
  slash: 'Slash',
  bounty: 'Prima',
  refund: 'Reembolso',
  delegated: 'Delegado',
  unbonding_started: 'Unbonding iniciado',
  unbonded: 'Retirado',
  claimed: 'Reclamado',
}
