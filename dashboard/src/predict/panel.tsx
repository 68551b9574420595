/** A model in use: a form for its columns or an image, and each class's probability. Nothing leaves the browser. */
import { queryOptions } from '@tanstack/react-query'
import { useEffect, useId, useRef, useState, type SyntheticEvent } from 'react'
import type { Schemas } from '../api/client'
import { formatBytes } from '../lib/amounts'
import { messageOf } from '../lib/errors'
import { Notice } from '../parts/basics'
import { Loaded } from '../parts/query'
import * as say from '../strings'
import { Cell, FromTable, Result, type Cells } from './form'
import { load, type Model } from './model'
import { pixelsOf, type Size } from './pixels'
import { readCell } from './rows'

type Graph = Schemas['ModelFile']

const words = say.predict
const RUNTIME_BYTES = 3_700_000 // of onnxruntime-web, as a server sends it

/** `version`: the digest of the model's parameters. `graph`: its file. */
export default function Panel({ task, version, graph }: { task: number; version: string; graph: Graph }) {
  const id = useId()
  const query = queryOptions({
    queryKey: ['predict', task, version, graph.name],
    queryFn: ({ signal }) => load(task, graph.name, signal),
    staleTime: Infinity,
    structuralSharing: false,
  })
  return (
    <section className="stack" aria-labelledby={id}>
      <h3 id={id}>{words.title}</h3>
      <p className="soft small">{words.means(formatBytes(graph.size + RUNTIME_BYTES))}</p>
      <Loaded query={query}>
        {(model) => (model.size ? <OfImage of={model} size={model.size} /> : <OfRow of={model} />)}
      </Loaded>
      <Notice kind="good">{words.stays}</Notice>
      {graph.name === 'model-int8.onnx' && <p className="soft small">{words.eightBits}</p>}
      <p className="soft small">{words.notForPatients}</p>
    </section>
  )
}

function OfRow({ of }: { of: Model }) {
  const [cells, setCells] = useState<Cells>({})
  const [values, setValues] = useState<number[] | Error>()
  const fill = (filled: Cells) => {
    setCells(filled)
    setValues(undefined)
  }
  const read = of.columns.map((column) => ({ column, text: cells[column.column] ?? '' }))
  const found = read.map(({ column, text }) => readCell(column, text))
  const predict = (event: SyntheticEvent) => {
    event.preventDefault()
    void of.ofRow(Float64Array.from(found, ({ value }) => value)).then(setValues, (error: unknown) => {
      setValues(new Error(messageOf(error)))
    })
  }
  return (
    <form className="stack" onSubmit={predict}>
      <FromTable columns={of.columns} fill={fill} />
      <div className="inputs">
        {read.map(({ column, text }, at) => (
          <Cell
            key={column.column}
            of={column}
            text={text}
            fault={found[at]?.fault ?? ''}
            change={(to) => fill({ ...cells, [column.column]: to })}
          />
        ))}
      </div>
      <div>
        <button className="main" disabled={found.some(({ fault }) => fault !== '')}>
          {words.go}
        </button>
      </div>
      <Result of={of} values={values} />
    </form>
  )
}

function OfImage({ of, size }: { of: Model; size: Size }) {
  const [pixels, setPixels] = useState<Uint8Array>()
  const [values, setValues] = useState<number[] | Error>()
  const take = async (file: File) => {
    setValues(undefined)
    const found = await decoded(file, size)
    setPixels(found)
    setValues(await of.ofImage(found))
  }
  return (
    <>
      <div className="tools">
        {' '}
        <label>
          {words.image(size.width, size.height)}
          <input
            type="file"
            accept="image/png,image/jpeg,image/bmp"
            onChange={({ target: { files } }) => {
              if (files?.[0]) void take(files[0]).catch((error: unknown) => setValues(new Error(messageOf(error))))
            }}
          />
        </label>
      </div>{' '}
      {pixels && <Seen pixels={pixels} size={size} />}
      <Result of={of} values={values} />
    </>
  )
}

/** Pixels of the model's size. Throws if the file is no image, or is transparent. */
async function decoded(file: File, size: Size): Promise<Uint8Array> {
  const image = await createImageBitmap(file, { colorSpaceConversion: 'none' })
  const canvas = new OffscreenCanvas(image.width, image.height)
  const context = canvas.getContext('2d', { willReadFrequently: true })
  context?.drawImage(image, 0, 0)
  const { data = new Uint8ClampedArray() } = context?.getImageData(0, 0, image.width, image.height) ?? {}
  for (let at = 3; at < data.length; at += 4) if (data[at] !== 255) throw new Error(words.transparent)
  return pixelsOf(data, image.width, image.height, size)
}

function Seen({ pixels, size: { channels, height, width } }: { pixels: Uint8Array; size: Size }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    const plane = width * height
    const shown = new ImageData(width, height)
    for (let at = 0; at < plane; at++) {
      const shades = [0, 1, 2].map((channel) => pixels[at + (channels === 1 ? 0 : channel * plane)] ?? 0)
      shown.data.set([...shades, 255], 4 * at)
    }
    canvas.current?.getContext('2d')?.putImageData(shown, 0, 0)
  }, [pixels, channels, height, width])
  return (
    <figure>
      <canvas ref={canvas} className="seen" width={width} height={height} />
      <figcaption className="soft small">{words.seen}</figcaption>
    </figure>
  )
}
