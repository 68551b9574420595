import type * as en from '../operate'

export const operate: typeof en.operate = {
  title: 'Operar',
  means: 'La cuenta que propuso esta tarea puede ampliar el fondo, detener la tarea y retirar el reembolso.',
  open: 'Operar esta tarea…',
  notYours: 'Solo la cuenta que propuso esta tarea puede operarla:',
  fund: 'Ampliar el fondo',
  fundMeans:
    'Cada ronda puede pagar entonces una parte igual más. El reembolso tiene las partes de las rondas que no se juegan. El pago que una ronda jugada no gana se quema.',
  fundOver: 'Todos se han unido, así que el fondo es fijo.',
  fundEnded: 'La tarea ha terminado, y con ella su fondo.',
  room: (amount) =>
    `La fianza del agregador permite ${amount} más como máximo: fallar una ronda debe costar al agregador al menos el doble de su pago por la ronda.`,
  tooMuch: (amount) => `La fianza del agregador es demasiado pequeña para eso. Añada ${amount} tokens como máximo.`,
  payRole: 'Una ronda paga como máximo',
  fundGo: 'Aprobar y añadir',
  stop: 'Detener la tarea',
  stopOpen: 'Detener…',
  stopJoining: 'La tarea termina de inmediato. Todos pueden liberar sus fianzas, y se le reembolsa todo el fondo.',
  stopRunning: (last) =>
    `La ronda actual se termina y se paga como siempre. La ronda ${last} es la última. Después se le reembolsan las partes del fondo de las rondas que no se jugaron. El pago que las rondas jugadas no ganaron se quema.`,
  stopForGood: 'Esto no se puede deshacer.',
  stopping: (last) => `Usted la ha detenido. La ronda ${last} es la última.`,
  stopEnded: 'Ha terminado.',
  refund: 'Reembolso',
  refundMeans: 'De los fondos de todas sus tareas terminadas.',
  refundable: 'Lo que puede retirar',
  refundGo: 'Retirar',
  model: 'El modelo',
  modelMeans:
    'La cadena y el almacén de artefactos definen el modelo. La línea de comandos lo deriva, como hace cada hospital, y antes comprueba cada ronda. Cualquiera puede hacerlo.',
  modelSources:
    'deployment.json es la libreta de direcciones de los contratos. artifacts es una carpeta o réplica del almacén de artefactos.',
  modelSoFar: 'La tarea no ha terminado, así que este es el modelo tras su última ronda terminada.',
  modelFiles: 'Archivos del modelo',
  modelFile: {
    'model.safetensors': 'los parámetros',
    'model.json': 'una descripción de los parámetros',
    'model-card.md': 'la ficha del modelo: datos, privacidad, puntuaciones',
    'proof.json': 'las comprobaciones de cada ronda',
    'program.json': 'el programa: el grafo del modelo',
    'program.safetensors': 'los pesos que su autor dio al programa',
    'program-frozen.safetensors': 'sus tensores que ningún hospital entrena',
    'program-tokenizer.json': 'convierte textos en tokens',
    'model.onnx': 'el modelo solo, para onnxruntime',
    'model-int8.onnx': 'el mismo con pesos de 8 bits, para teléfonos',
    'report.json': 'lo que vale: una evaluación, con las cifras firmadas de los nodos',
    'report.html': 'lo mismo como página',
    'report.svg': 'lo mismo como imagen',
  },
  modelAfter: (round, rounds, verified) =>
    `Tras la ronda ${round} de ${rounds}. ${verified ? 'Cada ronda se comprobó al derivar el modelo.' : 'NO VERIFICADO: algunas comprobaciones fallan. Vea la ficha del modelo.'}`,
  modelDoubt: 'No tiene que confiar en este servidor. Para derivar usted mismo el modelo de la cadena, ejecute:',
  modelNone: 'Aún no ha terminado ninguna ronda de entrenamiento, así que no hay modelo.',
}
