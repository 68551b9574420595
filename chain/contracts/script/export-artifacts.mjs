// Writes what the chain room needs of each deployable contract, {abi, bytecode}, after `forge build`.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CONTRACTS = ['ConsiliumToken', 'Staking', 'PrevrandaoBeacon', 'DrandBeacon', 'Tasks']
const LARGEST = 24_576 // bytes of runtime code, EIP-170

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const target = join(root, '..', 'consilium_chain', 'contracts')
mkdirSync(target, { recursive: true })

for (const name of CONTRACTS) {
  const { abi, bytecode, deployedBytecode } = JSON.parse(readFileSync(join(root, 'out', `${name}.sol`, `${name}.json`)))
  if (Object.keys(bytecode.linkReferences).length > 0) throw new Error(`${name} needs linking, which no deployer here does`)
  const size = (deployedBytecode.object.length - 2) / 2
  if (size > LARGEST) throw new Error(`${name} has ${size} bytes of code, a chain takes ${LARGEST} at most`)
  const path = join(target, `${name}.json`)
  const text = JSON.stringify({ abi, bytecode: bytecode.object })
  if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text)
  console.log(`${name}: ${size} bytes`)
}
