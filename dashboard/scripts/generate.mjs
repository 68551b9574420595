// From what the contracts' compiler and the API say of themselves: `src/generated/abi.ts` and `src/generated/api.d.ts`.
// Arguments: the folder of the contracts' artifacts, and the OpenAPI document.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapi, { astToString } from 'openapi-typescript'

const [contracts, document] = process.argv.slice(2)
const generated = join(import.meta.dirname, '..', 'src', 'generated')
mkdirSync(generated, { recursive: true })

const abis = { tasksAbi: 'Tasks', stakingAbi: 'Staking', tokenAbi: 'ConsiliumToken' }
const lines = Object.entries(abis).map(([name, contract]) => {
  const { abi } = JSON.parse(readFileSync(join(contracts, `${contract}.json`), 'utf8'))
  return `export const ${name} = ${JSON.stringify(abi)} as const\n`
})
writeFileSync(join(generated, 'abi.ts'), lines.join('\n'))
writeFileSync(
  join(generated, 'api.d.ts'),
  astToString(await openapi(JSON.parse(readFileSync(document, 'utf8')))),
)
