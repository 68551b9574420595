/** A model's columns, and rows of a table for them. Pure. */
import * as say from '../strings'

const words = say.predict

/** An entry of `inputs` in model.json (docs/models.md). */
export type Input = { column: string } & (
  { min: number; max: number } | { codes: readonly number[]; names?: readonly string[] } | { is_missing: true }
)
/** A column of a row. With `names`, a cell has one of these instead of its code. */
export type Column = Exclude<Input, { is_missing: true }>

/** The columns of a row, in the order of the graph's input. */
export function columnsOf(inputs: readonly Input[]): Column[] {
  const columns = inputs.filter((one): one is Column => !('is_missing' in one))
  return [...new Map(columns.map((one) => [one.column, one])).values()]
}

/** What a cell of a column of codes may have. */
export function valuesOf(column: { codes: readonly number[]; names?: readonly string[] }): readonly string[] {
  return column.names ?? column.codes.map(String)
}

const MISSING = new Set(['', '?'])
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i

/** A cell's number, NaN for a missing value, and the fault of its text; '' for none. As `consilium predict` reads it. */
export function readCell(column: Column, text: string): { value: number; fault: string } {
  const written = text.trim()
  if (MISSING.has(written)) return { value: NaN, fault: '' }
  if ('codes' in column && column.names) {
    const value = column.codes[column.names.indexOf(written.normalize('NFC'))]
    return value === undefined ? { value: NaN, fault: words.valueUnknown(column.names) } : { value, fault: '' }
  }
  if (!NUMBER.test(written)) return { value: NaN, fault: words.notNumber }
  const value = Number(written)
  if ('codes' in column) return { value, fault: column.codes.includes(value) ? '' : words.codeUnknown(column.codes) }
  const isInside = column.min <= value && value <= column.max
  return { value, fault: isInside ? '' : words.outside(column.min, column.max) }
}

/** The rows of a CSV text by their columns' names. Cells may be in double quotes; tabs and semicolons part them, too. */
export function parseTable(text: string): { names: string[]; rows: Record<string, string>[] } {
  const [first = ''] = text.split(/\r?\n/, 1)
  const comma = ['\t', ';'].find((one) => first.includes(one)) ?? ','
  const [names = [], ...lines] = linesOf(text.replace(/^\ufeff/, ''), comma)
  return { names, rows: lines.map((cells) => Object.fromEntries(names.map((name, at) => [name, cells[at] ?? '']))) }
}

function linesOf(text: string, comma: string): string[][] {
  const lines: string[][] = []
  let [cells, cell, isQuoted] = [[] as string[], '', false]
  const endLine = () => {
    cells.push(cell.trim())
    if (cells.some((one) => one !== '')) lines.push(cells)
    cells = []
    cell = ''
  }
  for (let at = 0; at < text.length; at++) {
    const one = text.charAt(at)
    if (one === '"') {
      if (isQuoted && text[at + 1] === '"') cell += text.charAt(at++)
      else isQuoted = !isQuoted
    } else if (isQuoted) cell += one
    else if (one === comma) {
      cells.push(cell.trim())
      cell = ''
    } else if (one === '\n') endLine()
    else if (one !== '\r') cell += one
  }
  endLine()
  return lines
}
