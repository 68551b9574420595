import type * as en from '../desk'

export const desk: typeof en.desk = {
  title: 'Meine Node',
  lead: 'Pflichten, Stake und Verdienst Ihres Kontos als Krankenhaus, Bewerter oder Aggregator.',
  own: 'Eigener Stake',
  ownMeans: 'als Node, in allen Rollen',
  claimable: 'Freigegebene Belohnungen',
  toPortfolio: 'Im Portfolio abholen',
  next: 'Nächste Pflicht',
  noDuty: 'Jetzt keine',
  alive: (role) => `${role}: letzte Pflicht`,
  answered: 'Erfüllt',
  missed: 'Versäumt',
  noneDue: 'Noch keine fällig',
  lastAct: 'letzte Handlung auf der Chain',
  noNode: 'Dieses Konto ist noch keine Node. Registrieren Sie es unten.',
  duties: 'Zu tun',
  dutiesMeans:
    'Die Software der Node erledigt das alles selbst. Sehen Sie nach der Node, wenn eine Pflicht kurz vor ihrer Frist noch hier steht.',
  nothingToDo: 'Jetzt ist nichts zu tun.',
  noApi:
    'Die API antwortet nicht. Deshalb fehlen Pflichten, Aufgaben und Zahlungen. Der Stake wird von der Chain gelesen.',
  overdue: 'zu spät: Jeder darf die Phase jetzt beenden',
  deed: {
    commit: 'Trainieren und das Commitment zum Update abgeben',
    handOver: 'Das Update zum Aggregator hochladen',
    unmask: 'Helfen, die Masken aus der Summe zu entfernen',
    submitEvidence: 'Im Streitfall Belege vorlegen',
    score: 'Die Summen bewerten, wenn Ihr Schlüssel einen Sitz zieht',
    reveal: 'Die Bewertungen aufdecken',
    fixSurvivors: 'Die Verbliebenen festlegen',
    publish: 'Die Summen veröffentlichen',
    nameCheaters: 'Im Streitfall den Betrüger benennen',
    discloseDecoys: 'Die Köder offenlegen und abrechnen',
  },
  without: {
    commit: 'keine Belohnung aus dieser Runde',
    handOver: 'ebenfalls keine Belohnung aus dieser Runde',
    unmask: 'Ihre Kohorte bekommt vielleicht keine Summe und dann keine Belohnung',
    submitEvidence: 'falls der Aggregator Sie als Betrüger benennt und das Komitee zustimmt',
    score: 'keine Belohnung aus dieser Runde',
    reveal: 'ebenfalls keine Belohnung aus dieser Runde',
    fixSurvivors: 'und die Runde ist ungültig',
    publish: 'und die Runde ist ungültig',
    nameCheaters: 'und die Runde ist ungültig',
    discloseDecoys: 'und die Runde ist ungültig',
  },
  withoutStatistics: 'diese Runde zahlt keine Belohnungen, aber die Aufgabe endet, wenn die Runde ungültig ist',
  slash: (percent, tokens) => `${tokens} Token, höchstens ${percent} der Kaution`,
  amounts: {
    active: 'Stake von Ihnen und Ihren Delegatoren',
    own: 'Ihr eigener Anteil',
    free: 'Frei für neue Kautionen',
    locked: 'In Kautionen gebunden',
    unbonding: 'Im Unbonding',
  },
  commission: 'Provision',
  key: 'Bewerterschlüssel',
  keyThere: 'registriert',
  keyMissing: 'nicht registriert: Dieser Bewerter kann keiner Aufgabe beitreten',
  page: 'Öffentliche Seite dieser Node',
  undelegate: 'Im Portfolio die Delegation auflösen',
  more: 'Zum Stake hinzufügen, in Token',
  addStake: 'Stake erhöhen',
  addTwoSteps:
    'Das braucht zwei Transaktionen: erst die Freigabe, dann den Stake. Der Stake deckt neue Kautionen, und auch Slashes für jetzige Kautionen können ihn treffen.',
  newCommission: 'Provision in Prozent',
  setCommission: 'Provision setzen',
  commissionMeans: (after) =>
    `Eine niedrigere Provision gilt sofort. Eine höhere gilt nach der Unbonding-Frist (${after}), damit Delegatoren vorher gehen können.`,
  notPercent: 'Das ist keine Provision. Geben Sie eine Zahl von 0 bis 100 ein, mit höchstens zwei Nachkommastellen.',
  become: 'Node werden',
  becomeMeans: {
    hospital:
      'Ein Krankenhaus trainiert mit Daten, die es nie verlassen. Es verdient Belohnungen, wenn seine Updates das Modell verbessern. Jede Aufgabe bindet einen Teil des Stakes als Kaution. Ein fehlendes, falsches oder schädliches Update kostet einen Teil der Kaution.',
    voter:
      'Ein Bewerter bewertet Summen anhand zurückgehaltener Zeilen und verdient Belohnungen für Bewertungen nahe am Median. Jede Aufgabe bindet einen Teil des Stakes als Kaution. Nicht aufgedeckte Bewertungen und solche, die einen Test nicht bestehen, kosten einen Teil der Kaution.',
    aggregator:
      'Ein Aggregator sammelt Updates, veröffentlicht ihre Summen und verdient ein Entgelt. Jede Aufgabe bindet einen Teil des Stakes als Kaution. Fehlende oder falsche Summen kosten einen Teil der Kaution.',
  },
  role: 'Rolle',
  amount: 'Stake, in Token',
  register: 'Registrieren',
  registerMeans:
    'Das Konto behält diese Rolle für immer. Stake können Sie später hinzufügen. Mit Stake braucht es zwei Transaktionen: erst die Freigabe, dann die Registrierung.',
  command: {
    hospital: {
      title: 'Schlüssel und Beitritt zu Aufgaben',
      means:
        'Der eigene Rechner des Krankenhauses erzeugt dessen Transport- und Verschlüsselungsschlüssel, denn sie dürfen nicht in einem Browser liegen. Er registriert sie beim Beitritt zu einer Aufgabe. Führen Sie auf diesem Rechner aus:',
      command: 'consilium hospital init',
    },
    voter: {
      title: 'Der Schlüssel, der Sitze zieht',
      means:
        'Dieser Schlüssel wird aus der Schlüsseldatei des Bewerters abgeleitet und signiert bei der Registrierung einen Beweis. Eine Wallet kann beides nicht. Führen Sie auf dem Rechner mit der Schlüsseldatei dieses Kontos aus:',
      command: 'consilium voter register',
    },
    aggregator: {
      title: 'Betrieb',
      means:
        'Der Server des Aggregators tritt den Aufgaben bei, die ihn benennen. Er braucht die Schlüsseldatei dieses Kontos. Führen Sie auf seinem Rechner aus:',
      command: 'consilium server run --config node.toml',
    },
  },
  tasks: 'Meine Aufgaben',
  noTasks: 'Dieses Konto ist keiner Aufgabe beigetreten.',
  someTasks: (n) => `Das sind die letzten ${n} Aufgaben jeder Rolle. Die öffentliche Seite der Node zeigt alle.`,
  release: 'Freigeben',
  releaseOf: (task) => `Die Kaution von Aufgabe ${task} freigeben`,
  payments: 'Meine Belohnungen und Slashes',
  noPayments: 'Dieses Konto hat noch keine Belohnungen oder Slashes.',
}
