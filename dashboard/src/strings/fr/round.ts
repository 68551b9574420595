import type * as en from '../round'

export const round: typeof en.round = {
  title: (n, task) => `Tour ${n} de la tâche ${task}`,
  cohorts: 'Cohortes',
  yes: 'oui',
  no: 'non',
  unknown: 'pas encore',
  match: 'égal à la somme du contrat',
  waits: 'pas encore',
  differs: 'diffère',
  flipped: 'de signe inversé, pour tester le comité',
  fate: { open: 'pas encore', published: 'publiée', dropped: 'abandonnée', accused: 'en litige' },
  committee: 'Comité',
  committeeMeans:
    'La balise et la clé de chaque évaluateur tirent le comité au sort, donc personne ne le connaît d’avance. Les évaluateurs s’engagent sur leurs notes, puis les révèlent.',
  noCommittee: 'Le comité n’a pas été tiré au sort.',
  verdict: {
    not_revealed: 'non révélé',
    scored: 'révélé',
    does_not_match: 'dit que les sommes publiées ne correspondent pas',
    stood_down: 's’est retiré',
  },
  invalid: 'pas de modèle valide',
  otherReading: (scores) => `lu avec le signe inversé : ${scores}`,
  events: (n) => `${n} événements`,
  spread: 'Dispersion des notes',
  noPayments: 'Ce tour n’a payé aucune récompense et prélevé aucun slash.',
  commitments: 'Engagements',
  unshown: 'pas montrés',
  evidence: 'Preuves',
  evidenceMeans: 'Cette page est construite à partir de ces événements du contrat.',
  verify: 'Vérifiez ce tour vous-même',
  verifyMeans:
    'Votre navigateur lit la chaîne, additionne les engagements, récupère les sommes publiées et recalcule leurs engagements. Il ne se fie au serveur de ce site pour aucun fait sur le tour.',
  verifyStart: 'Vérifier maintenant',
}
