// Writes what the chain room needs of each deployable contract, {abi, bytecode}, after `forge build`.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CONTRACTS = ['ConsiliumToken', 'Staking', 'PrevrandaoBeacon', 'DrandBeacon', 'TaskRegistry', 'Tasks']
// A contract that delegates to another answers for both: callers need the one interface.
const DELEGATES = { Tasks: 'TaskRegistry' }
const LARGEST = 24_576 // bytes of runtime code, EIP-170

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const target = join(root, '..', 'consilium_chain', 'contracts')
mkdirSync(target, { recursive: true })

const compiled = (name) => JSON.parse(readFileSync(join(root, 'out', `${name}.sol`, `${name}.json`)))

function interfaceOf(name) {
  const own = compiled(name).abi.filter(({ type }) => type !== 'fallback')
  if (!(name in DELEGATES)) return own
  const known = new Set(own.map((entry) => JSON.stringify(entry)))
  const added = compiled(DELEGATES[name]).abi.filter((entry) => entry.type !== 'constructor' && !known.has(JSON.stringify(entry)))
  return [...own, ...added]
}

for (const name of CONTRACTS) {
  const { bytecode, deployedBytecode } = compiled(name)
  if (Object.keys(bytecode.linkReferences).length > 0) throw new Error(`${name} needs linking, which no deployer here does`)
  const size = (deployedBytecode.object.length - 2) / 2
  if (size > LARGEST) throw new Error(`${name} has ${size} bytes of code, a chain takes ${LARGEST} at most`)
  const path = join(target, `${name}.json`)
  const text = JSON.stringify({ abi: interfaceOf(name), bytecode: bytecode.object })
  if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text)
  console.log(`${name}: ${size} bytes`)
}
