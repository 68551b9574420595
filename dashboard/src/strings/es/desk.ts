import type * as en from '../desk'

export const desk: typeof en.desk = {
  title: 'Mi nodo',
  lead: 'Deberes, stake y ganancias de su cuenta como hospital, evaluador o agregador.',
  own: 'Stake propio',
  ownMeans: 'como nodo, en todos los roles',
  claimable: 'Recompensas consolidadas',
  toPortfolio: 'Reclamar en la cartera',
  next: 'Próximo deber',
  noDuty: 'Ninguno ahora',
  alive: (role) => `${role}: último deber`,
  answered: 'Cumplido',
  missed: 'Incumplido',
  noneDue: 'Aún no hay ninguno',
  lastAct: 'último acto en la cadena',
  noNode: 'Esta cuenta aún no es un nodo. Regístrela abajo.',
  duties: 'Por hacer',
  dutiesMeans:
    'El software del nodo hace todo esto por sí mismo. Revise el nodo si un deber sigue aquí poco antes de su plazo.',
  nothingToDo: 'Nada que hacer ahora.',
  noApi: 'La API no responde, así que faltan deberes, tareas y pagos. El stake se lee de la cadena.',
  overdue: 'demasiado tarde: cualquiera puede terminar ya la fase',
  deed: {
    commit: 'Entrenar y comprometerse con la actualización',
    handOver: 'Subir la actualización al agregador',
    unmask: 'Ayudar a quitar las máscaras de la suma',
    submitEvidence: 'Aportar pruebas en la disputa',
    score: 'Puntuar las sumas, si su clave obtiene un puesto',
    reveal: 'Revelar las puntuaciones',
    fixSurvivors: 'Fijar los supervivientes',
    publish: 'Publicar las sumas',
    nameCheaters: 'Nombrar al tramposo en la disputa',
    discloseDecoys: 'Divulgar los señuelos y liquidar',
  },
  without: {
    commit: 'ninguna recompensa de esta ronda',
    handOver: 'tampoco hay recompensa de esta ronda',
    unmask: 'su cohorte puede quedarse sin suma, y entonces sin recompensa',
    submitEvidence: 'si el agregador le nombra tramposo y el comité está de acuerdo',
    score: 'ninguna recompensa de esta ronda',
    reveal: 'tampoco hay recompensa de esta ronda',
    fixSurvivors: 'y la ronda es nula',
    publish: 'y la ronda es nula',
    nameCheaters: 'y la ronda es nula',
    discloseDecoys: 'y la ronda es nula',
  },
  withoutStatistics: 'esta ronda no paga recompensas, pero la tarea termina si la ronda es nula',
  slash: (percent, tokens) => `${tokens} tokens, como máximo el ${percent} de la fianza`,
  amounts: {
    active: 'Stake de usted y de sus delegadores',
    own: 'Su propia parte',
    free: 'Libre para nuevas fianzas',
    locked: 'Bloqueado en fianzas',
    unbonding: 'En unbonding',
  },
  commission: 'Comisión',
  key: 'Clave de evaluador',
  keyThere: 'registrada',
  keyMissing: 'no registrada: este evaluador no puede unirse a ninguna tarea',
  page: 'Página pública de este nodo',
  undelegate: 'Retirar la delegación en la cartera',
  more: 'Añadir al stake, en tokens',
  addStake: 'Añadir stake',
  addTwoSteps:
    'Esto requiere dos transacciones: la aprobación y luego el stake. El stake respalda nuevas fianzas, y los slashes de las fianzas actuales también pueden alcanzarlo.',
  newCommission: 'Comisión, en por ciento',
  setCommission: 'Fijar la comisión',
  commissionMeans: (after) =>
    `Una comisión más baja vale de inmediato. Una más alta vale tras el periodo de unbonding (${after}), para que los delegadores puedan irse antes.`,
  notPercent: 'Esto no es una comisión. Introduzca un número de 0 a 100, con dos decimales como máximo.',
  become: 'Ser un nodo',
  becomeMeans: {
    hospital:
      'Un hospital entrena con datos que nunca salen de él. Gana recompensas cuando sus actualizaciones mejoran el modelo. Cada tarea bloquea una parte del stake como fianza. Una actualización ausente, falsa o dañina cuesta una parte de la fianza.',
    voter:
      'Un evaluador puntúa sumas con filas reservadas, y gana recompensas por puntuaciones cercanas a la mediana. Cada tarea bloquea una parte del stake como fianza. Las puntuaciones no reveladas, o que no superan una prueba, cuestan una parte de la fianza.',
    aggregator:
      'Un agregador recoge actualizaciones, publica sus sumas y gana un honorario. Cada tarea bloquea una parte del stake como fianza. Las sumas ausentes o erróneas cuestan una parte de la fianza.',
  },
  role: 'Rol',
  amount: 'Stake, en tokens',
  register: 'Registrar',
  registerMeans:
    'La cuenta conserva este rol para siempre. Puede añadir stake más tarde. Con stake, esto requiere dos transacciones: la aprobación y luego el registro.',
  command: {
    hospital: {
      title: 'Claves y unión a tareas',
      means:
        'La máquina del propio hospital crea sus claves de transporte y de cifrado, porque no deben estar en un navegador. Las registra cuando se une a una tarea. En esa máquina, ejecute:',
      command: 'consilium hospital init',
    },
    voter: {
      title: 'La clave que obtiene puestos',
      means:
        'Esta clave se deriva del archivo de clave del evaluador, y firma una prueba al registrarse. Una wallet no puede hacer ninguna de las dos cosas. En la máquina con el archivo de clave de esta cuenta, ejecute:',
      command: 'consilium voter register',
    },
    aggregator: {
      title: 'Ponerlo en marcha',
      means:
        'El servidor del agregador se une a las tareas que lo nombran. Necesita el archivo de clave de esta cuenta. En su máquina, ejecute:',
      command: 'consilium server run --config node.toml',
    },
  },
  tasks: 'Mis tareas',
  noTasks: 'Esta cuenta no se ha unido a ninguna tarea.',
  someTasks: (n) => `Estas son las últimas ${n} tareas de cada rol. La página pública del nodo las tiene todas.`,
  release: 'Liberar',
  releaseOf: (task) => `Liberar la fianza de la tarea ${task}`,
  payments: 'Mis recompensas y slashes',
  noPayments: 'Esta cuenta aún no tiene recompensas ni slashes.',
}
