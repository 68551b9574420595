import { pluralIn } from '../../lib/language'
import type * as en from '../audit'

const plural = pluralIn('es')

export const audit: typeof en.audit = {
  title: (task) => `Auditoría de la tarea ${task}`,
  lead: 'Su navegador verifica todas las rondas terminadas de esta tarea, una tras otra, con la cadena y las sumas publicadas.',
  go: 'Verificar todas las rondas',
  again: 'Verificar todas de nuevo',
  cancel: 'Detener',
  reading: 'Leyendo la tarea de la cadena…',
  plan: (rounds, blobs) =>
    `Se ${plural(rounds, 'comprueba', 'comprueban')} ${rounds} ${plural(rounds, 'ronda', 'rondas')} y se ${plural(blobs, 'lee', 'leen')} ${blobs} ${plural(blobs, 'blob', 'blobs')} de 128 KiB.`,
  takes: (duration) => `Tarda unos ${duration}. Puede detenerlo en cualquier momento y conservar lo comprobado.`,
  left: (duration) => `quedan unos ${duration}`,
  doing: (round, step) => `Ronda ${round}: ${step}`,
  none: 'Aún no ha terminado ninguna ronda de esta tarea.',
  progress: 'Rondas verificadas',
  done: (n, of) => `${n} de ${of} rondas verificadas`,
  rounds: 'Rondas',
  verdict: 'Veredicto',
  steps: 'Pasos',
  verdicts: { holds: 'correcto', fails: 'FALLA', 'could not check': 'no verificable' },
  allHold: (rounds) => `Todas las comprobaciones de las ${rounds} rondas son correctas.`,
  someFail: (rounds) => `Una comprobación FALLA en: ${rounds}. No confíe en esta tarea hasta que sepa el motivo.`,
  someOpen: (rounds) => `Ninguna comprobación falla, pero no todas se pudieron hacer en: ${rounds}. Vea los pasos.`,
  stopped: (left) => `Usted la detuvo. Quedan ${left} rondas sin verificar.`,
  roundsOf: (rounds) => rounds.map((one) => `ronda ${one}`).join(', '),
  notTitle: 'Lo que no se comprobó',
  notProven: [
    'El archivo de tarea, y que el contrato haga cumplir sus condiciones.',
    'Los carriles de las sumas, los tramposos de las cohortes acusadas, el modelo y el dinero: use consilium verify.',
    'Que los hospitales entrenaron con honradez, con datos reales y con todos ellos.',
    'Que las puntuaciones son honradas: la aceptación depende de las medianas del comité.',
    'Que el nodo de la cadena informa bien de su cadena y que este sitio nombra los contratos correctos: use su propio nodo.',
    'Que el código de este sitio hace lo que dice: compare sus archivos con el código fuente, o alójelos usted.',
  ],
  report: 'El informe',
  reportMeans:
    'Un archivo JSON con todos los veredictos y los hashes de todo lo comprobado. Fírmelo, y otros verán quién lo hizo y que nadie lo ha cambiado.',
  download: 'Descargar el informe',
  open: 'Firmarlo…',
  sign: 'Firmar el informe',
  signed: 'Firmado por',
  signing: 'Confírmelo en su wallet. No cuesta nada.',
}
