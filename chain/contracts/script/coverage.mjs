// Which lines of `src`, and which sides of its conditions, the tests run: `npm run coverage`. Fails below FLOOR.
//
// `forge coverage` counts lines well but not branches: an `if` without `else` has one side for it, and one whose body is a
// bare `return` or `continue` counts as taken whenever it is asked. So this gives every `if` of a copy of the sources
// both sides, each with a line of its own, and counts those lines. The operands of `&&`, `||` and `?:` are not counted.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const solc = createRequire(import.meta.url)('solc')

const FLOOR = 95 // per cent
const MARK = 'addmod(1, 1, 1);' // allowed in every function, and kept by the compiler

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const repository = join(root, '..', '..')
const target = join(repository, 'bench', 'results', 'coverage.json')
const copy = join(root, 'cache', 'coverage')
const contracts = join(copy, 'chain', 'contracts')

function* children(node) {
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (child?.nodeType) yield child
  }
}

// The outermost `if` statements at or below a node, in the order of the source.
function conditions(node) {
  if (node.nodeType === 'IfStatement') return [node]
  return [...children(node)].flatMap(conditions).sort((a, b) => start(a) - start(b))
}

const start = ({ src }) => Number(src.split(':')[0])

const written = ({ src }) => Number(src.split(':')[0]) + Number(src.split(':')[1])

// Where a statement ends: solc leaves its semicolon out, most of the time.
function end(node, source) {
  if (node.nodeType === 'IfStatement') return end(node.falseBody ?? node.trueBody, source)
  const last = written(node)
  return '};'.includes(String.fromCharCode(source[last - 1])) ? last : source.indexOf(';', last) + 1
}

const text = (source, from, to) => source.subarray(from, to).toString()

function marked(source, nodes, from, to) {
  let result = ''
  for (const node of nodes) {
    const condition = text(source, start(node.condition), written(node.condition)).replaceAll(/\s+/g, ' ')
    const side = (name, body) => {
      const inside = body ? marked(source, conditions(body), start(body), end(body, source)) : ''
      return `{\n${MARK} // ${name} ${condition}\n${inside}\n}`
    }
    result += text(source, from, start(node.trueBody)) + side('if', node.trueBody) + ' else ' + side('unless', node.falseBody)
    from = end(node, source)
  }
  return result + text(source, from, to)
}

function syntaxTrees(sources) {
  const settings = { outputSelection: { '*': { '': ['ast'] } }, remappings: ['@openzeppelin/=node_modules/@openzeppelin/'] }
  const read = (path) => ({ contents: readFileSync(join(root, path), 'utf8') })
  const compiled = JSON.parse(solc.compile(JSON.stringify({ language: 'Solidity', sources, settings }), { import: read }))
  const errors = (compiled.errors ?? []).filter(({ severity }) => severity === 'error')
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join('\n'))
  return compiled.sources
}

function writeMarkedCopy() {
  rmSync(copy, { recursive: true, force: true })
  mkdirSync(contracts, { recursive: true })
  for (const name of ['foundry.toml', 'script', 'test']) cpSync(join(root, name), join(contracts, name), { recursive: true })
  cpSync(join(repository, 'tests', 'vectors'), join(copy, 'tests', 'vectors'), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(contracts, 'node_modules'))

  const paths = readdirSync(join(root, 'src'), { recursive: true }).filter((path) => path.endsWith('.sol')).map((path) => `src/${path}`)
  const sources = new Map(paths.map((path) => [path, readFileSync(join(root, path))]))
  const trees = syntaxTrees(Object.fromEntries(paths.map((path) => [path, { content: sources.get(path).toString() }])))
  for (const [path, source] of sources) {
    mkdirSync(dirname(join(contracts, path)), { recursive: true })
    writeFileSync(join(contracts, path), marked(source, conditions(trees[path].ast), 0, source.length))
  }
}

// Gas and size are those of the code that ships, and invariants run for minutes to check sums, not to reach lines.
function run() {
  const command = ['coverage', '--report', 'lcov', '--no-match-contract', 'GasTest|InvariantsTest|SizesTest']
  execFileSync(join(root, 'script', 'forge'), command, { cwd: contracts, env: { ...process.env, FOUNDRY_PROFILE: 'analysis' }, stdio: 'inherit' })
}

function count() {
  const files = {}
  const missed = []
  let path, lines
  for (const entry of readFileSync(join(contracts, 'lcov.info'), 'utf8').split('\n')) {
    const [key, value] = entry.split(/:(.*)/)
    if (key === 'SF') {
      path = value.startsWith('src/') ? value : undefined
      if (!path) continue
      files[path] = { lines: [0, 0], branches: [0, 0] }
      lines = readFileSync(join(contracts, path), 'utf8').split('\n')
    }
    if (key !== 'DA' || !path) continue
    const [number, hits] = value.split(',').map(Number)
    const line = lines[number - 1].trim()
    const counted = files[path][line.startsWith(MARK) ? 'branches' : 'lines']
    ++counted[1]
    if (hits > 0) ++counted[0]
    else missed.push(`${path}: ${line.replace(`${MARK} // `, '')}`)
  }
  return { files, missed }
}

const share = ([hit, found]) => Math.floor((10_000 * hit) / found) / 100
const sum = (files, what) => Object.values(files).reduce(([hit, found], { [what]: [h, f] }) => [hit + h, found + f], [0, 0])

writeMarkedCopy()
run()
const { files, missed } = count()
const total = { lines: sum(files, 'lines'), branches: sum(files, 'branches') }
const result = { command: 'npm run coverage', floor: FLOOR, total, missed, files }
writeFileSync(target, JSON.stringify(result, null, 2).replace(/\[\s+(\d+),\s+(\d+)\s+\]/g, '[$1, $2]') + '\n')
for (const line of missed) console.log(`not run  ${line}`)
for (const [what, of] of Object.entries(total)) console.log(`${what}: ${of[0]} of ${of[1]}, ${share(of)} %`)
if (Object.values(total).some((of) => share(of) < FLOOR)) throw new Error(`coverage is below ${FLOOR} %`)
