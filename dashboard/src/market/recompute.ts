/** The model of a task, or those of an ensemble, of this server, run again on a request's rows. Onnxruntime-web is larger
 * than all else, and is loaded on demand.
 */
import { mixed } from '../lib/ensembles'
import { areAlike, ReceiptMalformed, rowsIn, valuesIn, type Bought, type Finding, type Row } from '../lib/selling'
import { load, type Model } from '../predict/model'
import { readCell, type Column } from '../predict/rows'
import * as say from '../strings'
import type { Part } from './sold'

/** Throws an error of the models' files. `holds`: null for a value that a model does not know. */
export async function recomputed(parts: readonly Part[], { request, response }: Bought): Promise<Finding> {
  const check = 'predictions' as const
  const answers: number[][][] = []
  let stated: number[][] = []
  for (const { task } of parts) {
    const model = await load(task, 'model.onnx', AbortSignal.timeout(120_000))
    if (model.size) throw new Error(say.predict.deep)
    let rows: readonly Row[]
    try {
      rows = rowsIn(request)
      stated = valuesIn(
        response,
        model.answers.map(({ words }) => words),
      )
    } catch (error) {
      if (error instanceof ReceiptMalformed || error instanceof SyntaxError)
        return { check, holds: false, compared: [error.message] }
      throw error
    }
    const own = await answersOf(model, rows)
    if (own === null) return { check, holds: null, compared: [] }
    answers.push(own)
  }
  const weights = parts.map(({ weight }) => weight)
  return { check, holds: areAlike(stated, mixed(weights, answers)), compared: [] }
}

/** Each row's answers; null for a value that the model does not know. */
async function answersOf(model: Model, rows: readonly Row[]): Promise<number[][] | null> {
  const cells = rows.map((row) => model.columns.map((column) => cellOf(column, row[column.column])))
  if (cells.flat().some(({ fault }) => fault !== '')) return null
  const own: number[][] = []
  for (const row of cells) own.push(await model.ofRow(Float64Array.from(row, ({ value }) => value)))
  return own
}
/** A value of JSON: a number, a text as in a form, or null for a missing one. */
function cellOf(column: Column, value: unknown) {
  if (typeof value === 'string') return readCell(column, value)
  if (value === null) return { value: NaN, fault: '' }
  if (typeof value !== 'number') return { value: NaN, fault: say.predict.notNumber }
  if ('codes' in column)
    return { value, fault: column.codes.includes(value) ? '' : say.predict.codeUnknown(column.codes) }
  return readCell(column, String(value))
}
