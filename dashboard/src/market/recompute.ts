/** The task's model, of this server, run again on a request's rows. It is larger than all else, and is loaded on demand. */
import { areAlike, ReceiptMalformed, rowsIn, valuesIn, type Bought, type Finding, type Row } from '../lib/selling'
import { load } from '../predict/model'
import { readCell, type Column } from '../predict/rows'
import * as say from '../strings'

/** Throws an error of the model's files. `holds`: null for a value that the model does not know. */
export async function recomputed(task: number, { request, response }: Bought): Promise<Finding> {
  const model = await load(task, 'model.onnx', AbortSignal.timeout(120_000))
  if (model.size) throw new Error(say.predict.deep)
  const check = 'predictions' as const
  let rows: readonly Row[]
  let stated: number[][]
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
  const cells = rows.map((row) => model.columns.map((column) => cellOf(column, row[column.column])))
  if (cells.flat().some(({ fault }) => fault !== '')) return { check, holds: null, compared: [] }
  const own: number[][] = []
  for (const row of cells) own.push(await model.ofRow(Float64Array.from(row, ({ value }) => value)))
  return { check, holds: areAlike(stated, own), compared: [] }
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
