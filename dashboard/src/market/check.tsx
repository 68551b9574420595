/** A receipt from a file, checked in this browser. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { config } from '../api/config'
import { messageOf } from '../lib/errors'
import { fileOf, readFile, type Bought } from '../lib/selling'
import { Loading, Notice } from '../parts/basics'
import * as say from '../strings'
import { Checks } from './checks'

const words = say.market

export default function Check() {
  const { data: network } = useQuery(config())
  const [found, setFound] = useState<Bought | string>()
  const take = async (file: File) => {
    try {
      setFound(readFile(await file.text()))
    } catch (error) {
      setFound(words.notReceipt(messageOf(error)))
    }
  }
  if (!network) return <Loading />
  return (
    <div className="stack">
      <label>
        {words.file}
        <input
          type="file"
          accept=".json,application/json"
          onChange={({ target: { files } }) => {
            if (files?.[0]) void take(files[0])
          }}
        />
      </label>
      {typeof found === 'string' && <Notice kind="bad">{found}</Notice>}
      {typeof found === 'object' && <Checks key={fileOf(found)} network={network} of={found} />}
    </div>
  )
}
