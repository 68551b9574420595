// From what the contracts' compiler and the API say of themselves: `src/generated/abi.ts` and `src/generated/api.d.ts`;
// from the ceremony's setup: `src/generated/ceremony.bin`.
// Arguments: the folder of the contracts' artifacts, the OpenAPI document, and EIP-4844's trusted_setup.txt.
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapi, { astToString } from 'openapi-typescript'

const [contracts, document, setup] = process.argv.slice(2)
const generated = join(import.meta.dirname, '..', 'src', 'generated')
mkdirSync(generated, { recursive: true })

const abis = { tasksAbi: 'Tasks', stakingAbi: 'Staking', tokenAbi: 'ConsiliumToken', modelSharesAbi: 'ModelShares' }
const abiOf = (contract) => JSON.parse(readFileSync(join(contracts, `${contract}.json`), 'utf8')).abi
// Nothing reads the names that Solidity gives its types.
const ofTypes = (key, value) => (key === 'internalType' ? undefined : value)
const tokenErrors = abiOf(abis.tokenAbi).filter((entry) => entry.type === 'error')
const lines = Object.entries(abis).map(([name, contract]) => {
  // A call of another contract may fail in the token's, with the token's error.
  const own = abiOf(contract)
  const others = tokenErrors.filter(
    (error) => !own.some((entry) => entry.type === 'error' && entry.name === error.name),
  )
  const abi = [...own, ...others]
  return `export const ${name} = ${JSON.stringify(abi, ofTypes)} as const\n`
})
writeFileSync(join(generated, 'api.d.ts'), astToString(await openapi(JSON.parse(readFileSync(document, 'utf8')))))

// The Lagrange points, uncompressed: a root for each would cost a browser seconds. In the order of a blob's scalars,
// which are evaluations in bit-reversed order, where the file has them in natural order.
const raw = readFileSync(setup)
if (
  createHash('sha256').update(raw).digest('hex') !== 'd39b9f2d047cc9dca2de58f264b6a09448ccd34db967881a6713eacacf0f26b7'
)
  throw new Error(`${setup} is not the ceremony's (SHA-256 differs)`)
const POINTS = 4096
const words = raw
  .toString('ascii')
  .split(/\s+/)
  .slice(2, 2 + POINTS)
const reversed = (index) => parseInt(index.toString(2).padStart(12, '0').split('').reverse().join(''), 2)
const points = Array.from(words, (_, index) => bls12_381.G1.Point.fromHex(words[reversed(index)]).toBytes(false))
writeFileSync(join(generated, 'ceremony.bin'), Buffer.concat(points))
writeFileSync(join(generated, 'abi.ts'), lines.join('\n')) // the last: make takes it as the sign that all are there
