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

// Where a statement ends: solc leaves its semicolon out, most of the time.
function end(node, source) {
  if (node.nodeType === 'IfStatement') return end(node.falseBody ?? node.trueBody, source)
  const last = start(node) + Number(node.src.split(':')[1])
  return '};'.includes(String.fromCharCode(source[last - 1])) ? last : source.indexOf(';', last) + 1
}

function marked(source, nodes, from, to) {
  let text = ''
  for (const node of nodes) {
    const side = (body) => `{\n${MARK}\n${body ? marked(source, conditions(body), start(body), end(body, source)) : ''}\n}`
    text += source.subarray(from, start(node.trueBody)) + side(node.trueBody) + ' else ' + side(node.falseBody)
    from = end(node, source)
  }
  return text + source.subarray(from, to)
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
  const text = (path) => readFileSync(join(root, path))
  const trees = syntaxTrees(Object.fromEntries(paths.map((path) => [path, { content: text(path).toString() }])))
  for (const path of paths) {
    const source = text(path)
    mkdirSync(dirname(join(contracts, path)), { recursive: true })
    writeFileSync(join(contracts, path), marked(source, conditions(trees[path].ast), 0, source.length))
  }
}

// Gas is that of the code that ships, and invariants run for minutes to check sums, not to reach lines.
function run() {
  const command = ['coverage', '--report', 'lcov', '--no-match-contract', 'GasTest|InvariantsTest']
  execFileSync(join(root, 'script', 'forge'), command, { cwd: contracts, env: { ...process.env, FOUNDRY_PROFILE: 'analysis' }, stdio: 'inherit' })
}

function count() {
  const files = {}
  const missed = []
  let file, lines, within
  for (const entry of readFileSync(join(contracts, 'lcov.info'), 'utf8').split('\n')) {
    const [key, value] = entry.split(/:(.*)/)
    if (key === 'SF') {
      file = value.startsWith('src/') ? (files[value] = { lines: [0, 0], branches: [0, 0] }) : undefined
      within = value
      if (file) lines = readFileSync(join(contracts, value), 'utf8').split('\n')
    }
    if (key !== 'DA' || !file) continue
    const [number, hits] = value.split(',').map(Number)
    const isSide = lines[number - 1] === MARK
    const counted = isSide ? file.branches : file.lines
    ++counted[1]
    if (hits > 0) ++counted[0]
    else missed.push(`${within}: ${isSide ? side(lines, number - 1) : lines[number - 1].trim()}`)
  }
  return { files, missed }
}

function side(lines, mark) {
  const above = lines[mark - 1]
  return above.endsWith('else {') ? `otherwise, of the condition before: ${lines[mark + 1].trim() || 'nothing'}` : above.trim()
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
