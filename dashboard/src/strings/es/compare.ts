import type * as en from '../compare'

export const compare: typeof en.compare = {
  title: 'Tareas en paralelo',
  lead: 'Cada gráfico tiene las tareas de una métrica. Las tareas con otras filas pueden ser más fáciles o más difíciles.',
  choose: 'Elija de dos a cuatro tareas en la lista de tareas.',
  toList: 'A la lista de tareas',
  table: 'Cifras de cada tarea',
  start: 'Al principio',
  now: 'Ahora',
  spent: 'Gastado del fondo',
  noNoise: 'sin ruido',
  noFigures: 'Ninguna tarea tiene aquí cifras medidas de dos rondas.',
}
