import type * as en from '../setup'

export const setup: typeof en.setup = {
  title: 'Su wallet',
  lead: 'Lleve esta red y su token a la wallet de su navegador.',
  link: 'Configurar su wallet',
  network: 'La red',
  networkMeans: 'El botón introduce esto por usted. También puede escribirlo en una wallet.',
  name: 'Nombre',
  chain: 'ID de la cadena',
  url: 'Nodo de la cadena (URL de RPC)',
  noUrl: 'ninguno; elija uno en su wallet',
  token: 'Token',
  steps: 'Configurar',
  go: 'Configurar mi wallet',
  again: 'Hacerlo de nuevo',
  step: {
    network: 'Añadir la red',
    token: 'Mostrar el token',
    funds: 'Obtener ether y tokens de prueba',
  },
  means: {
    network: 'La wallet conoce entonces la cadena y su nodo, y la usa para esta página.',
    token: 'La wallet muestra entonces su saldo del token que paga y respalda las tareas.',
    funds: (ether, tokens) =>
      `Esta es una cadena de desarrollo en su propia máquina. Su cuenta pública de faucet le envía ${ether} ether y ${tokens} tokens. No tienen valor en ningún otro lugar.`,
  },
  state: { waits: '', runs: 'Confírmelo en su wallet, si pregunta.', done: 'Hecho.' },
  held: (ether, tokens) => `La cuenta tiene ahora ${ether} ether y ${tokens} tokens.`,
  noFaucet: 'el nodo de esta cadena no tiene una cuenta de faucet con suficientes tokens.',
  declinedToken: 'La wallet no muestra el token. Puede usarlo igualmente.',
  next: 'Proponer una tarea',
}
