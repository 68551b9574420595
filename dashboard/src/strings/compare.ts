/** Texts of the page that shows tasks side by side. */
export const compare = {
  title: 'Tasks side by side',
  lead: 'Each figure has the tasks of one metric. Tasks on other rows may be easier or harder.',
  choose: 'Choose two to four tasks in the list of tasks.',
  toList: 'To the list of tasks',
  table: 'Figures of each task',
  start: 'At the start',
  now: 'Now',
  spent: 'Spent from the pool',
  noNoise: 'no noise',
  noFigures: 'No task here has measured figures of two rounds.',
}
