/** The question of a task in plain words. Each part is a whole phrase, because another language orders them differently. */
const list = (names: readonly string[], more: number) => names.join(', ') + (more > 0 ? ` and ${more} more` : '')
const images: Readonly<Record<string, string>> = {
  CR: 'an X-ray',
  CT: 'a CT image',
  DX: 'an X-ray',
  MG: 'a mammogram',
  MR: 'an MR image',
  PT: 'a PET image',
  US: 'an ultrasound image',
}

export const question = {
  list,
  source: {
    table: (n: number) => (n === 1 ? 'a column of a table' : `${n} columns of a table`),
    text: () => 'a text',
    corpus: () => 'a text',
    images: (_: number, modality: string | null) => images[modality ?? ''] ?? 'an image',
    series: (n: number) => `a series of ${n} ${n === 1 ? 'variable' : 'variables'}`,
  },
  classification: (answers: string, source: string, isMany: boolean) =>
    `Which of ${answers} ${isMany ? 'do' : 'does'} ${source} show?`,
  regression: (target: string, unit: string, source: string) =>
    `How much is ${target}${unit && `, in ${unit}`}, from ${source}?`,
  survival: (target: string, upTo: string, source: string) =>
    `How long until ${target}, up to ${upTo}, from ${source}?`,
  multilabel: (answers: string, source: string, isMany: boolean) =>
    `Which of ${answers}, each yes or no, ${isMany ? 'do' : 'does'} ${source} show?`,
  segmentation: (answers: string, source: string) => `Which pixels of ${source} show ${answers}?`,
  nextToken: (source: string) => `Which token comes next in ${source}?`,
  unknown: 'The server does not have a valid task file, so it cannot say the question.',
}
