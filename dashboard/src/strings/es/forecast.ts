import type * as en from '../forecast'

export const forecast: typeof en.forecast = {
  title: 'Previsión con sus propias filas',
  means: 'Simule la tarea en su propia máquina, y abra aquí el resultado. Nada de él sale de este navegador.',
  command: 'consilium simulate task.toml --table rows.csv --sites COLUMN --output simulated.json',
  file: 'Resultado de la simulación (JSON)',
  pooled: 'Con todas las filas en un lugar',
  rejected: 'Cohortes honradas rechazadas',
  rejectedMeans: 'de todas las que tuvieron una suma',
  slashed: 'Slashes de hospitales honrados',
  slashedMeans: 'veces, en todas las rondas',
  of: (some, all) => `${some} de ${all}`,
  paid: 'Pagado en todas las rondas',
  ofPool: (pool) => `del fondo de ${pool}`,
  most: 'Pagado en la ronda más cara',
  void: 'Rondas nulas',
  absent: 'Compromisos incumplidos',
  unfair:
    'Todos los hospitales de una simulación son honrados. Baje accept_floor y harmful_below, o pida evaluadores con más filas.',
  otherTask: (sections) =>
    `Esta simulación es de otra tarea. Difieren estas partes: ${sections.join(', ')}. Simule el archivo como está ahora.`,
  refused: {
    tooLarge: (most) => `El archivo es mayor que ${most}, así que no se lee.`,
    noJson: 'El archivo no es JSON.',
    foreign:
      'El archivo no es un resultado de consilium simulate, o lo escribió una versión anterior. Escríbalo de nuevo con --output.',
    grid: 'El archivo es de una rejilla. Simule la tarea sin --grid.',
    malformed: (field) => `El archivo está dañado: ${field} falta o no es válido.`,
  },
}
