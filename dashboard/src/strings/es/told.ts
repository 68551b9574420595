import { pluralIn } from '../../lib/language'
import type * as en from '../told'

const plural = pluralIn('es')

export const told: typeof en.told = {
  title: 'Avisos',
  lead: 'Puede recibir avisos de eventos que cuestan dinero en las tareas y los nodos que sigue: slashes, plazos incumplidos, rondas sin pago, tareas que terminan, comisiones más altas, stake vencido.',
  watch: 'Seguir',
  watched: 'Dejar de seguir',
  full: 'La lista está llena: quite antes una entrada.',
  list: 'Lo que sigue',
  listMeans: 'La lista está en este navegador. 50 tareas y 50 nodos como máximo.',
  empty: 'Nada todavía: elija «Seguir» en la página de una tarea o de un nodo.',
  remove: 'Quitar',
  here: 'En este navegador',
  hereMeans:
    'Las notificaciones llegan mientras una página de este panel está abierta, también en otra pestaña. Esto no necesita cuenta, y no envía nada a nadie. De un nodo llegan aquí solo los eventos que lo nombran; un servidor avisa también de los de sus tareas.',
  turnOn: 'Mostrar notificaciones',
  turnOff: 'No mostrar ninguna',
  isOn: 'Las notificaciones se muestran.',
  denied: 'El navegador no permite notificaciones de este sitio. Cámbielo en su configuración.',
  unsupported: 'Este navegador no tiene notificaciones para esta página. Necesita HTTPS.',
  away: 'Mientras está fuera',
  awayMeans:
    'Este servidor puede enviar eventos a un webhook o a una dirección de correo. Su wallet inicia sesión, y no se envía ninguna transacción. También recibe avisos de su propia cuenta.',
  open: 'Fijar un webhook o una dirección de correo…',
  signIn: 'Iniciar sesión',
  signing: 'Su wallet pide una firma…',
  statement: 'Firma para recibir avisos de eventos. Con esto no se paga nada.',
  off: 'Este servidor no envía nada: su operador no lo ha configurado.',
  kind: { https: 'Webhook', mailto: 'Correo' },
  hint: { https: 'https://…', mailto: 'name@example.org' },
  none: 'ninguno',
  state: {
    asked: {
      https: 'espera la respuesta al desafío',
      mailto: 'espera a que se abra el enlace del correo',
    },
    confirmed: { https: 'recibe avisos', mailto: 'recibe avisos' },
    failed: { https: 'no responde: fíjelo de nuevo', mailto: 'no acepta correo: fíjela de nuevo' },
  },
  notOffered: 'Este servidor no envía estos avisos.',
  set: 'Fijar',
  forget: 'Olvidar',
  secret: 'El secreto del webhook, mostrado una vez. Sus mensajes se firman con él, según Standard Webhooks:',
  isSame: 'El servidor tiene la misma lista.',
  differs: 'El servidor tiene otra lista.',
  sendList: 'Enviar la lista de este navegador',
  takeList: 'Tomar la lista del servidor',
  confirm: 'Confirmar la dirección de correo',
  confirmMeans: 'Esta dirección recibe entonces avisos de los eventos que una cuenta sigue.',
  confirmed: 'La dirección está confirmada.',
  stop: 'Terminar los correos',
  stopMeans: 'La dirección se olvida entonces.',
  stopped: 'No llegan más correos.',
  of: {
    slash: (account, tokens, why) => `${account} perdió ${tokens} tokens: ${why}`,
    missed: (account) => `${account} no se comprometió a tiempo, y queda fuera`,
    void: (why) => `La ronda es nula y no paga nada: ${why}`,
    rejected: (rejected, of) =>
      `${plural(rejected, 'Se rechazó', 'Se rechazaron')} ${rejected} de ${of} cohortes, sin ganancia`,
    stopped: 'El operador detuvo la tarea tras esta ronda',
    ended: 'La tarea terminó',
    wiped: (account) => `Un slash se llevó todo el stake de ${account}`,
    address: (account, to, at) => `El stake y las recompensas de ${account} se pagan a ${to} desde ${at}`,
    commission: (account, percent, at) => `${account} sube su comisión a ${percent} el ${at}`,
  },
}
