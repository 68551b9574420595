import { formatPrecise, formatShare } from '../../lib/amounts'
import type * as en from '../predict'

export const predict: typeof en.predict = {
  open: 'Probar el modelo…',
  title: 'Probar el modelo',
  means: (size) =>
    `El modelo se ejecuta en este navegador. El primer uso carga el modelo y onnxruntime-web (${size}). El modelo es el de este servidor: para estar seguro de él, derívelo usted mismo, como abajo, y use consilium predict.`,
  stays: 'Sus valores se quedan en este navegador: nada de ellos se envía ni se guarda.',
  eightBits: 'Estos números son del archivo con pesos de 8 bits. Pueden diferir un poco de los de consilium predict.',
  notForPatients: 'No use un modelo por sí solo para decisiones sobre personas.',
  range: (name, min, max) => `${name} (de ${min} a ${max})`,
  missing: 'falta',
  notNumber: 'Escriba un número con punto decimal, o déjelo vacío si falta.',
  outside: (min, max) => `El modelo conoce valores de ${min} a ${max}.`,
  codeUnknown: (codes) => `El modelo conoce los códigos ${codes.join(', ')}.`,
  valueUnknown: (names) => `El modelo conoce los valores ${names.join(', ')}.`,
  table: 'Rellenar desde una tabla: CSV, con los nombres de columna de aquí',
  pasted: 'O péguela, con su primera línea',
  row: 'Fila',
  ofRows: (rows) => `de ${rows}`,
  lacks: (names) => `A la tabla le falta ${names.join(', ')}: falta en el formulario.`,
  noColumns: 'La primera línea no nombra ninguna columna del modelo. Péguela con la línea de nombres.',
  image: (width, height) => `Una imagen: PNG o JPEG, llevada a ${width} × ${height} píxeles`,
  seen: 'La imagen como la ve el modelo',
  transparent: 'La imagen es transparente en parte. Guárdela sin canal alfa.',
  go: 'Predecir',
  result: 'Predicción',
  percent: formatShare,
  amount: (value, unit) => `${formatPrecise(value)} ${unit}`.trim(),
  changed: 'El servidor acaba de sustituir este modelo. Abra esta página de nuevo.',
  deep: 'Este modelo lee imágenes que un navegador no lee. Use consilium predict.',
  unread: 'La descripción del modelo del servidor no se puede leer aquí.',
}
