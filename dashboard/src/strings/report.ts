import { formatWhole } from '../lib/amounts'

export const report = {
  title: 'What the model is worth',
  means: (round: number) =>
    `After round ${round}, on rows that the model never saw. In parentheses: 95 % intervals. The chain cannot prove these figures, because the rows are not public.`,
  noRows: 'The operator shows no figures on labelled rows of its own.',
  rows: (rows: number) => `On ${formatWhole(rows)} labelled rows of the operator’s.`,
  sites: 'By site',
  site: 'Site',
  all: 'all',
  nodes: 'The task’s hospitals and voters, each on held-out rows of its own',
  nodesMean:
    'A node’s account signed its figures; this server checked the signatures. Figures are rounded, and rows are rounded down to tens.',
  node: 'Node',
  notShared: 'not shared',
  signed: 'signed by',
  start: (metric: string) => `Before training: ${metric}`,
  alone: (metric: string) => `Trained alone: ${metric}`,
  subgroups: 'Subgroups',
  subgroup: 'Subgroup',
  whose: 'Rows of',
  operator: 'the operator',
  calibration: 'Calibration',
  calibrationMeans: 'Of all rows with about this predicted probability, the share that is of the class.',
  predicted: 'predicted probability',
  observed: 'observed share',
  perfect: 'as predicted',
  low: 'interval, from',
  high: 'interval, to',
  noCurve: 'Too few rows for a curve.',
  importance: (whose: string) => `Importance of columns, rows of ${whose}`,
  importanceMeans: (metric: string) =>
    `Loss of “${metric}” with the column’s values dealt to other rows: the mean of ten deals. The thin line is from the least to the most.`,
  column: 'Column',
  loss: 'Loss',
  range: 'Least to most',
  to: (low: string, high: string) => `${low} to ${high}`,
}
