import type * as en from '../wallet'

export const wallet: typeof en.wallet = {
  chain: (id) => `Cadena de Consilium (${id})`,
  connect: 'Conectar una wallet',
  connectMeans: 'Sus claves se quedan en la wallet. No se envía nada antes de que usted lo confirme allí.',
  noWallet:
    'Este navegador no tiene ninguna wallet. Instale una, por ejemplo MetaMask o Rabby. En un teléfono, abra esta página en el navegador de su wallet.',
  onPhone: 'Si tiene una de estas wallets en este teléfono, abra esta página en su navegador:',
  openIn: (wallet) => `Abrir en ${wallet}`,
  injected: 'La wallet del navegador',
  connected: 'Conectado como',
  by: (wallet) => `por ${wallet}`,
  switched: 'La wallet ha cambiado a otra cuenta. Los formularios de abajo conservan lo que introdujo, y siguen con',
  understood: 'Entendido',
  disconnect: 'Desconectar',
  noNode: 'este sitio no tiene nodo de la cadena. Conecte una wallet.',
  wrongChain: (id) => `La wallet está en otra cadena. Estos contratos están en la cadena ${id}.`,
  switchChain: 'Cambiar de cadena',
}

export const sending: typeof en.sending = {
  act: (act, of) => `${act} de ${of}: `,
  permitting: 'Firme la aprobación en su wallet. No cuesta nada.',
  checking: 'Comprobando con el contrato que esto tendrá éxito…',
  signing: 'Confírmelo en su wallet.',
  pending: 'Enviado. Esperando a la cadena…',
  confirmed: (block, replaced) =>
    `Hecho, en el bloque ${block}${replaced ? ', con una tarifa más alta que la enviada primero' : ''}.`,
  slow: 'Aún no hay respuesta. La wallet puede estar bloqueada, o esperar en otra ventana o en otro dispositivo.',
  leave: 'Dejar de esperar',
  left: 'Esta página ya no espera, y no se pide nada más. La wallet aún puede mostrar una solicitud: rechácela allí. Si la confirma, se envía.',
  partly: (act, of) =>
    `Al final la wallet envió el paso ${act} de ${of}, y la cadena lo ejecutó. El resto no se pidió.`,
  stands: {
    staking: (amount) =>
      `Hay una aprobación vigente: el contrato de staking puede tomar ${amount} de sus tokens. Siga con el mismo importe y no se pide una segunda aprobación, o retírela.`,
    tasks: (amount) =>
      `Hay una aprobación vigente: el contrato de tareas puede tomar ${amount} de sus tokens. Siga con el mismo importe y no se pide una segunda aprobación, o retírela.`,
  },
  takeBack: 'Retirar la aprobación',
  cancelled: 'Usted canceló esto en su wallet. No se llevará a cabo.',
  replaced: 'Otra transacción suya sustituyó a esta. Esta no se llevará a cabo.',
  outOfGas:
    'La transacción falló, muy probablemente porque se quedó sin gas. Solo se pagó la tarifa. Inténtelo de nuevo con el límite de gas que propone la wallet.',
}

export const refused: typeof en.refused = {
  declined: 'Usted rechazó esto en su wallet. No se envió.',
  noEther: 'La cuenta tiene muy poco ether para pagar el gas. Envíele algo, e inténtelo de nuevo.',
  wrongChain: 'La wallet está en otra cadena. Cámbiela, e inténtelo de nuevo.',
  noNode: 'El nodo de la cadena no responde. Inténtelo más tarde, o conecte una wallet que tenga su propio nodo.',
  busy: 'La wallet está bloqueada, o espera su respuesta a una solicitud anterior. Ábrala, responda allí, e inténtelo de nuevo.',
  noAccount:
    'La wallet no permite a esta página usar la cuenta. Desbloquéela o conéctela de nuevo, e inténtelo otra vez.',
  otherAccount:
    'La wallet tiene ahora otra cuenta seleccionada. Esto no se envió. Seleccione de nuevo la primera, o siga con esta.',
  disconnected: 'La wallet no tiene conexión con la cadena. Revise su red, e inténtelo de nuevo.',
  late: 'La cadena no respondió a tiempo. Mire la wallet o el historial de su cuenta antes de intentarlo de nuevo.',
  code: (code) =>
    `La wallet o su nodo de la cadena informa de un fallo (código ${code}). Inténtelo de nuevo, o use otra wallet u otro nodo.`,
  reverted: (why) => `El contrato rechaza esto: ${why}`,
  other: (why) => `Esto no funcionó: ${why}`,
  unknown: 'El contrato rechaza esto',
  byName: {
    AmountIsZero: 'El importe debe ser mayor que cero',
    AlreadyRegistered: 'Esta cuenta ya es un nodo de ese rol',
    NodeUnknown: 'Este nodo no existe',
    CommissionTooHigh: 'La comisión es demasiado alta',
    PoolWornOut: 'Los slashes han dejado muy poco stake de este nodo para añadirle más',
    StakeInsufficient: 'El nodo tiene muy poco stake libre',
    SharesInsufficient: 'Usted tiene menos que eso en ese nodo',
    RequestUnknown: 'Esta solicitud de unbonding no existe, o ya se retiró',
    StillUnbonding: 'Esto aún no ha vencido: espere hasta entonces',
    StillBacking: 'Una fianza bloqueada necesita este stake hasta que termine su tarea: saque menos, o espere',
    OnlyWithdrawalAddress: 'La dirección de retirada es otra cuenta: solo ella puede actuar aquí',
    WithdrawalAddressInvalid: 'No se puede pagar a esta cuenta: elija otra dirección',
    PaidElsewhere: 'Esto se paga a la dirección de retirada del nodo, así que no se puede delegar desde aquí',
    NothingToClaim: 'Aún no hay nada que reclamar',
    ERC20InsufficientBalance: 'La cuenta tiene muy pocos tokens',
    ERC20InsufficientAllowance: 'La aprobación es de un importe menor: apruebe de nuevo',
    ERC20InvalidSpender: 'Este contrato no puede recibir una aprobación',
    ERC2612ExpiredSignature: 'La firma ha caducado: firme de nuevo',
    ERC2612InvalidSigner: 'Otra cuenta hizo la firma: firme de nuevo',
    NotOperator: 'Solo el operador de la tarea puede hacer esto',
    ParamsInvalid: 'Las condiciones de la tarea no son válidas',
    ProposalsStopped: 'Estos contratos ya no aceptan tareas nuevas',
    TaskUnknown: 'Esta tarea no existe',
    TaskFull: 'La tarea está llena',
    AlreadyJoined: 'Esta cuenta ya se ha unido',
    WrongPhase: 'La tarea está en otra fase',
    AlreadyStopped: 'La tarea se ha detenido, o ha terminado',
    SafeERC20FailedOperation: 'No se pudieron transferir los tokens',
  },
}
