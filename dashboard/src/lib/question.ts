/** A task's question as a sentence. */
import type { Schemas } from '../api/client'
import * as say from '../strings'

type Asked = Schemas['Asked']
const words = say.question

export function questionOf(asked: Asked | null): string {
  if (!asked) return words.unknown
  const source = words.source[asked.of](asked.inputs, asked.modality)
  const isMany = asked.of === 'table' && asked.inputs > 1
  const more = asked.answers_in_all - asked.answers.length
  switch (asked.kind) {
    case 'classification':
      return words.classification(words.list(asked.answers, more), source, isMany)
    case 'multilabel':
      return words.multilabel(words.list(asked.answers, more), source, isMany)
    case 'segmentation':
      return words.segmentation(words.list(asked.answers.slice(1), more), source) // the first is the background
    case 'regression':
      return words.regression(asked.target, asked.unit, source)
    case 'survival':
      return words.survival(asked.target, `${asked.up_to ?? ''} ${asked.unit}`.trim(), source)
    case 'next_token':
      return words.nextToken(source)
  }
}
