/** Texts of a simulation's result, beside the costs of a task. */
export const forecast = {
  title: 'Forecast from your own rows',
  means: 'Simulate the task on your own machine, and open the result here. Nothing of it leaves this browser.',
  command: 'consilium simulate task.toml --table rows.csv --sites COLUMN --output simulated.json',
  file: 'Result of the simulation (JSON)',
  pooled: 'With all rows in one place',
  rejected: 'Honest cohorts rejected',
  rejectedMeans: 'of all that had a sum',
  slashed: 'Honest hospitals slashed',
  slashedMeans: 'times, in all rounds',
  of: (some: string, all: string) => `${some} of ${all}`,
  paid: 'Paid in all rounds',
  ofPool: (pool: string) => `of the pool’s ${pool}`,
  most: 'Paid in the dearest round',
  void: 'Void rounds',
  absent: 'Missed commits',
  unfair:
    'All hospitals of a simulation are honest. Lower accept_floor and harmful_below, or ask for voters with more rows.',
  otherTask: (sections: readonly string[]) =>
    `This simulation is of another task. These parts differ: ${sections.join(', ')}. Simulate the file as it is now.`,
  refused: {
    tooLarge: (most: string) => `The file is larger than ${most}, so it is not read.`,
    noJson: 'The file is not JSON.',
    foreign:
      'The file is not a result of consilium simulate, or an older version wrote it. Write it again with --output.',
    grid: 'The file is of a grid. Simulate the task without --grid.',
    malformed: (field: string) => `The file is damaged: ${field} is missing or invalid.`,
  },
}
