/** Texts of a task's statistics. They load with them, and not with each page. */
export const statistics = {
  title: 'The rows of all hospitals together',
  means: (hospitals: number) =>
    hospitals === 1
      ? 'Only one hospital gave counts in round 0, so these are of its rows alone.'
      : `Round 0 counted these over ${hospitals} hospitals. Each figure is a sum over the cohort, never of one hospital. Anybody can compute it from the published sum.`,
  things: {
    rows: 'Rows',
    stays: 'Stays',
    images: 'Images',
    texts: 'Texts',
  },
  hospitals: 'Hospitals',
  epsilon: 'ε of these counts',
  delta: (delta: string) => `at δ = ${delta}, for each row`,
  noise: 'Noise in each count',
  deviation: 'standard deviation, on top of ±; counts can be below 0',
  exact: 'none',
  answer: (column: string) => `${column}, the answer`,
  known: (values: string) => `${values} with a value`,
  missing: (share: string) => `${share} missing`,
  middle: (mean: string, half: string) => `mean ${mean} ± ${half}`,
  quartiles: (of: string, width: string) => `quartiles ${of} (± ${width})`,
  range: 'Range',
  value: 'Value',
  count: 'Count',
  share: 'Share',
  to: (low: string, high: string) => `${low} to ${high}`,
  leftOut: (columns: number) => `${columns} more columns: “consilium operator statistics” shows them.`,
}
