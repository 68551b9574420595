/** Texts of predictions in the browser. */
import { formatPrecise, formatShare } from '../lib/amounts'

export const predict = {
  open: 'Try the model…',
  title: 'Try the model',
  means: (size: string) =>
    `The model runs in this browser. The first use loads the model and onnxruntime-web (${size}). The model is this server’s: to be sure of it, derive it yourself, as below, and use consilium predict.`,
  stays: 'Your values stay in this browser: nothing of them is sent or stored.',
  eightBits:
    'These numbers are of the file with 8-bit weights. They may differ a little from those of consilium predict.',
  notForPatients: 'Do not use a model alone for decisions about people.',
  range: (name: string, min: number, max: number) => `${name} (${min} to ${max})`,
  missing: 'missing',
  notNumber: 'Write a number, or leave it empty if it is missing.',
  outside: (min: number, max: number) => `The model knows values from ${min} to ${max}.`,
  codeUnknown: (codes: readonly number[]) => `The model knows the codes ${codes.join(', ')}.`,
  valueUnknown: (names: readonly string[]) => `The model knows the values ${names.join(', ')}.`,
  table: 'Fill in from a table: CSV, columns named as here',
  pasted: 'Or paste it, with its first line',
  row: 'Row',
  ofRows: (rows: number) => `of ${rows}`,
  lacks: (names: readonly string[]) => `The table lacks ${names.join(', ')}: missing in the form.`,
  noColumns: 'The first line names none of the model’s columns. Paste it with the line of names.',
  image: (width: number, height: number) => `An image: PNG or JPEG, brought to ${width} × ${height} pixels`,
  seen: 'The image as the model sees it',
  transparent: 'The image is transparent in parts. Save it without an alpha channel.',
  go: 'Predict',
  result: 'Prediction',
  percent: formatShare,
  amount: (value: number, unit: string) => `${formatPrecise(value)} ${unit}`.trim(),
  changed: 'The server has just replaced this model. Open this page again.',
  deep: 'This model reads images that a browser does not. Use consilium predict.',
  unread: 'The server’s description of the model is not readable here.',
}
