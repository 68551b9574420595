import type * as en from '../arena'

export const arena: typeof en.arena = {
  title: 'Arena',
  means: (decay) =>
    `La actualización de cada participante es pública. Cada uno entrena solo, los evaluadores ordenan los modelos y el mejor es la siguiente base. Un puesto gana el ${decay} del anterior; un modelo que apenas mejora no tiene puesto.`,
  judging: (round, trainers) =>
    `La ronda ${round} con ${trainers} participantes no ha terminado. Los puestos siguen cuando los evaluadores revelan sus puntuaciones.`,
  nobody: 'No ha empezado ninguna ronda.',
  place: 'Lugar',
  rank: 'Último puesto',
  firsts: 'Primeros puestos',
  ranked: 'Rondas con puesto',
  curve: 'La curva de un participante',
  choice: (place, account) => `${place}. ${account}`,
  own: 'Este participante',
  best: 'El mejor de la ronda',
}
