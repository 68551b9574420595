import { expect, test } from 'vitest'
import { questionOf } from '../src/lib/question'

type Asked = NonNullable<Parameters<typeof questionOf>[0]>
const plain: Asked = {
  of: 'table',
  inputs: 8,
  modality: null,
  kind: 'classification',
  target: 'label',
  answers: ['healthy', 'ill'],
  answers_in_all: 2,
  unit: '',
  up_to: null,
  deviation: null,
}
const KINDS: Partial<Asked>[] = [
  { of: 'table' },
  { of: 'text', inputs: 1 },
  { of: 'images', inputs: 1 },
  { of: 'series', inputs: 5 },
]
const amount: Partial<Asked> = { kind: 'regression', target: 'stay', unit: 'days', deviation: 3 }
const time: Partial<Asked> = { kind: 'survival', target: 'recurrence', unit: 'years', up_to: 10 }
const several: Partial<Asked> = { kind: 'multilabel', answers: ['oedema', 'nodule'], target: '' }

test.each([
  [
    {},
    [
      'Which of healthy, ill do 8 columns of a table show?',
      'Which of healthy, ill does a text show?',
      'Which of healthy, ill does an image show?',
      'Which of healthy, ill does a series of 5 variables show?',
    ],
  ],
  [
    amount,
    [
      'How much is stay, in days, from 8 columns of a table?',
      'How much is stay, in days, from a text?',
      'How much is stay, in days, from an image?',
      'How much is stay, in days, from a series of 5 variables?',
    ],
  ],
  [
    time,
    [
      'How long until recurrence, up to 10 years, from 8 columns of a table?',
      'How long until recurrence, up to 10 years, from a text?',
      'How long until recurrence, up to 10 years, from an image?',
      'How long until recurrence, up to 10 years, from a series of 5 variables?',
    ],
  ],
  [
    several,
    [
      'Which of oedema, nodule, each yes or no, do 8 columns of a table show?',
      'Which of oedema, nodule, each yes or no, does a text show?',
      'Which of oedema, nodule, each yes or no, does an image show?',
      'Which of oedema, nodule, each yes or no, does a series of 5 variables show?',
    ],
  ],
])('a question is a sentence for each kind of data: %o', (asked, sentences) =>
  expect(KINDS.map((kind) => questionOf({ ...plain, ...asked, ...kind }))).toEqual(sentences),
)

test.each<[Partial<Asked>, string]>([
  [{ inputs: 1 }, 'Which of healthy, ill does a column of a table show?'],
  [{ ...amount, unit: '' }, 'How much is stay, from 8 columns of a table?'],
  [{ ...time, unit: '' }, 'How long until recurrence, up to 10, from 8 columns of a table?'],
  [{ of: 'corpus', kind: 'next_token', inputs: 1, answers: [] }, 'Which token comes next in a text?'],
  [{ of: 'images', modality: 'DX' }, 'Which of healthy, ill does an X-ray show?'],
  [{ of: 'images', modality: 'XYZ' }, 'Which of healthy, ill does an image show?'],
  [{ answers_in_all: 256 }, 'Which of healthy, ill and 254 more do 8 columns of a table show?'],
  [
    { of: 'images', modality: 'CT', kind: 'segmentation', answers: ['background', 'liver'] },
    'Which pixels of a CT image show liver?',
  ],
])('a question says what it has: %o', (asked, sentence) => expect(questionOf({ ...plain, ...asked })).toBe(sentence))

test('without a task file there is no question', () => expect(questionOf(null)).toContain('task file'))
