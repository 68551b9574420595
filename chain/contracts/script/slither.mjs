// Holds Slither's findings against their answers in `docs/static-analysis.md`: `npm run slither`. Fails on a finding without
// an answer, and on an answer without its finding. Findings are told apart by detector and location, a function or a
// variable, and counted there, so that lines may move.
//
// An answer is a list item under the detector's heading: "- `Location`, `Location` ×2: why this is right". SLITHER
// names the executable.
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const answersPath = join(root, '..', '..', 'docs', 'static-analysis.md')
const slither = process.env.SLITHER ?? 'slither'

// Contract.function, Contract.variable, or a contract by itself.
function locationOf({ type, name, type_specific_fields: { parent } }) {
  if (type === 'function') return `${parent.name}.${name}`
  if (!parent) return name
  return parent.type === 'contract' ? `${parent.name}.${name}` : locationOf(parent)
}

function findings() {
  // Slither reads every build that it finds there, so there must be one, and a whole one.
  rmSync(join(root, 'cache', 'analysis'), { recursive: true, force: true })
  const env = { ...process.env, FOUNDRY_PROFILE: 'analysis' }
  execFileSync(join(root, 'script', 'forge'), ['build', 'src', '--build-info', '--quiet'], { cwd: root, env, stdio: 'inherit' })
  const { error, stdout, stderr } = spawnSync(slither, ['.', '--json', '-'], { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 })
  if (error) throw new Error(`${slither} does not run (${error.code}): \`make slither\` installs it`)
  if (!stdout) throw new Error(`${slither} wrote no findings:\n${stderr}`)
  const report = JSON.parse(stdout)
  if (!report.success) throw new Error(`Slither failed: ${report.error}`)
  return (report.results.detectors ?? []).map(({ check, elements, description }) => ({
    key: `${check}  ${locationOf(elements[0])}`,
    description: description.trim(),
  }))
}

function answers() {
  const counts = new Map()
  for (const section of readFileSync(answersPath, 'utf8').split(/^#+ /m)) {
    const detector = section.match(/^`([a-z0-9-]+)`/)?.[1]
    if (!detector) continue
    for (const item of section.split(/^- /m).slice(1)) {
      for (const [, name, times] of item.split(/:\s/)[0].matchAll(/`([^`]+)`(?: ×(\d+))?/g)) {
        counts.set(`${detector}  ${name}`, Number(times ?? 1))
      }
    }
  }
  return counts
}

const found = new Map()
for (const { key, description } of findings()) found.set(key, [...(found.get(key) ?? []), description])
const answered = answers()
const wrong = []
for (const key of new Set([...found.keys(), ...answered.keys()])) {
  const [has, wants] = [found.get(key)?.length ?? 0, answered.get(key) ?? 0]
  if (has === wants) continue
  const what = (found.get(key) ?? []).map((description) => description.replaceAll(/^/gm, '    '))
  wrong.push([`${key}: found ${has}, answered ${wants}`, ...what].join('\n'))
}
console.log(`Slither: ${[...found.values()].flat().length} findings, ${answered.size} answers`)
if (wrong.length > 0) {
  console.error(wrong.join('\n'))
  console.error('Mend the code, or answer in docs/static-analysis.md')
  process.exit(1)
}
