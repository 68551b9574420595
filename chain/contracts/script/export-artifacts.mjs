// Writes what the chain room needs of each deployable contract, after `forge build`: NAME.json with its interface and code,
// and NAME.input.json, solc's standard JSON input with just its sources, from which anybody compiles the same bytes.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Tasks last: make takes its file as the sign that all are there.
const CONTRACTS = [
  'ConsiliumToken', 'Staking', 'PrevrandaoBeacon', 'DrandBeacon', 'TaskRegistry', 'TaskSettlement', 'ModelShares', 'Till',
  'SponsoredAccount', 'Tasks',
]
// A contract that delegates to another answers for all: callers need the one interface.
const DELEGATES = { Tasks: ['TaskRegistry', 'TaskSettlement'] }
const LARGEST = 24_576 // bytes of runtime code, EIP-170

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const target = join(root, '..', 'consilium_chain', 'contracts')
mkdirSync(target, { recursive: true })

const compiled = (name) => JSON.parse(readFileSync(join(root, 'out', `${name}.sol`, `${name}.json`)))

function interfaceOf(name) {
  const own = compiled(name).abi.filter(({ type }) => type !== 'fallback')
  if (!(name in DELEGATES)) return own
  const known = new Set(own.map((entry) => JSON.stringify(entry)))
  const isNew = (entry) => {
    const text = JSON.stringify(entry)
    return entry.type !== 'constructor' && !known.has(text) && known.add(text)
  }
  return [...own, ...DELEGATES[name].flatMap((code) => compiled(code).abi.filter(isNew))]
}

// What the compiler itself says that it was given, without `compilationTarget`, which is no part of an input.
function standardInput({ language, settings, sources }) {
  const { compilationTarget, ...given } = settings
  const outputSelection = { '*': { '*': ['abi', 'evm.bytecode', 'evm.deployedBytecode', 'metadata'] } }
  const read = (path) => [path, { content: readFileSync(join(root, path), 'utf8') }]
  return { language, sources: Object.fromEntries(Object.keys(sources).map(read)), settings: { ...given, outputSelection } }
}

function writeIfChanged(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return
  writeFileSync(`${path}.part`, text)
  renameSync(`${path}.part`, path) // never half of it
}

for (const name of CONTRACTS) {
  const { bytecode, deployedBytecode, metadata } = compiled(name)
  if (Object.keys(bytecode.linkReferences).length > 0) throw new Error(`${name} needs linking, which no deployer here does`)
  const size = (deployedBytecode.object.length - 2) / 2
  if (size > LARGEST) throw new Error(`${name} has ${size} bytes of code, a chain takes ${LARGEST} at most`)
  const immutables = Object.values(deployedBytecode.immutableReferences ?? {}).flat()
  const [[file, contract]] = Object.entries(metadata.settings.compilationTarget)
  const artifact = {
    abi: interfaceOf(name),
    bytecode: bytecode.object,
    runtime: deployedBytecode.object,
    immutables: immutables.map(({ start, length }) => [start, length]),
    compiler: metadata.compiler.version,
    source: `${file}:${contract}`,
  }
  writeIfChanged(join(target, `${name}.input.json`), JSON.stringify(standardInput(metadata)))
  writeIfChanged(join(target, `${name}.json`), JSON.stringify(artifact))
  console.log(`${name}: ${size} bytes`)
}
