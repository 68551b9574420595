import { formatWhole } from '../../lib/amounts'
import type * as en from '../report'

export const report: typeof en.report = {
  title: 'Lo que vale el modelo',
  means: (round) =>
    `Tras la ronda ${round}, con filas que el modelo nunca vio. Entre paréntesis: intervalos del 95 %. La cadena no puede probar estas cifras, porque las filas no son públicas.`,
  noRows: 'El operador no muestra cifras de filas etiquetadas propias.',
  rows: (rows) => `Con ${formatWhole(rows)} filas etiquetadas del operador.`,
  sites: 'Por centro',
  alone: (metric) => `Entrenado solo: ${metric}`,
  site: 'Centro',
  all: 'todos',
  nodes: 'Los hospitales y evaluadores de la tarea, cada uno con sus propias filas reservadas',
  nodesMean:
    'La cuenta de un nodo firmó sus cifras; este servidor comprobó las firmas. Las cifras se redondean, y las filas se redondean hacia abajo a decenas.',
  node: 'Nodo',
  notShared: 'no compartido',
  signed: 'firmado por',
  start: (metric) => `Antes del entrenamiento: ${metric}`,
  subgroups: 'Subgrupos',
  subgroup: 'Subgrupo',
  whose: 'Filas de',
  operator: 'el operador',
  calibration: 'Calibración',
  calibrationMeans: 'De todas las filas con más o menos esta probabilidad predicha, la parte que es de la clase.',
  predicted: 'probabilidad predicha',
  observed: 'parte observada',
  perfect: 'como se predijo',
  low: 'intervalo, desde',
  high: 'intervalo, hasta',
  noCurve: 'Muy pocas filas para una curva.',
  importance: (whose) => `Importancia de las columnas, filas de ${whose}`,
  importanceMeans: (metric) =>
    `Pérdida de «${metric}» con los valores de la columna repartidos a otras filas: la media de diez repartos. La línea fina va del mínimo al máximo.`,
  column: 'Columna',
  loss: 'Pérdida',
  range: 'De mínimo a máximo',
  to: (low, high) => `de ${low} a ${high}`,
}
