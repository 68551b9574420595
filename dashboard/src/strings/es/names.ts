import { pluralIn } from '../../lib/language'
import type * as en from '../names'

const plural = pluralIn('es')

export const profile: typeof en.profile = {
  title: 'Perfil',
  name: 'Nombre',
  institution: 'Institución',
  country: 'País',
  site: 'Sitio web',
  contact: 'Contacto',
  means: 'Esta cuenta firmó estos textos sobre sí misma. Solo se comprobaron las líneas confirmadas. Firmado',
  verified: { domain: 'Dominio confirmado', ens: 'Nombre ENS confirmado' },
  asked: {
    domain: 'Un archivo allí nombra esta dirección. Preguntado',
    ens: 'El nombre lleva a esta dirección. Preguntado',
  },
  verifies: { domain: (host) => `${host} confirma esta dirección`, ens: (name) => `ENS confirma ${name}` },
  verify: (account, file) =>
    `Para confirmar el sitio, escriba \`${account}\` en una línea de \`${file}\`. Un servidor que confirma nombres pregunta poco después de cada publicación y luego cada hora.`,
  open: 'Fijar el perfil público…',
  lead: 'Todas las páginas muestran este nombre junto a su dirección. Su wallet lo firma, y no se envía ninguna transacción. Deje un campo vacío para no mostrarlo.',
  hints: {
    name: '60 caracteres como máximo, en una sola escritura',
    institution: '100 caracteres como máximo, en una sola escritura',
    country: 'dos letras, por ejemplo DE',
    site: 'https://…',
    contact: 'una dirección de correo',
  },
  sign: 'Firmar y publicar',
  signing: 'Su wallet pide una firma…',
  done: 'El perfil está publicado.',
  contract: 'Esta cuenta es un contrato. Un perfil necesita la firma de la clave propia de una cuenta.',
}

export const search: typeof en.search = {
  title: 'Buscar',
  lead: 'Una dirección o su comienzo, un nombre, el número de una tarea o de un conjunto, o el hash de una transacción.',
  label: 'Buscar',
  none: 'No se encontró nada.',
  found: (many) => (many === 20 ? 'Los primeros 20 resultados' : `${many} ${plural(many, 'resultado', 'resultados')}`),
  transaction: 'Transacción',
  ofAccount: 'un evento de',
  with: 'con',
}
