/** Builds the dashboard once in each language, with its own folder instead of src/strings. A page then loads no text of
 * another language, and none of a page that is not open. One index.html holds them all; public/first.js chooses, and
 * has the open page's files loaded beside the program's.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build, resolveConfig } from 'vite'

const { values: given } = parseArgs({ options: { outDir: { type: 'string' }, logLevel: { type: 'string' } } })
const outDir = given.outDir ?? (await resolveConfig({}, 'build', 'production', 'production')).build.outDir
const strings = resolve('src/strings')
const languages = readdirSync(strings, { withFileTypes: true }).filter((one) => one.isDirectory())

/** The index.html of one language, and its manifest. Files that are the same in all have one name, and stay. */
async function built(language, isFirst) {
  const words = language === 'en' ? strings : join(strings, language)
  await build({
    logLevel: given.logLevel,
    define: { __LANGUAGE__: JSON.stringify(language) },
    resolve: { alias: [{ find: /^(?:\.\.?\/)+strings(?=\/|$)/, replacement: words }] },
    build: { outDir, emptyOutDir: isFirst, manifest: true },
  })
  const manifest = JSON.parse(readFileSync(join(outDir, '.vite/manifest.json'), 'utf8'))
  return [readFileSync(join(outDir, 'index.html'), 'utf8'), manifest]
}

/** The page's module for each path of the router: else it is asked for once the first program has come and run. The frame
 * of a page that needs a wallet comes first.
 */
function routes() {
  const app = readFileSync('src/app.tsx', 'utf8')
  const files = new Map(
    [...app.matchAll(/^const (\w+) = lazy\(\(\) => import\('\.\/(.+)'\)\)$/gm)].map(([, name, file]) => [name, file]),
  )
  const found = [...app.matchAll(/path: '([^']+)',\s*element: \(?\s*(?:<(\w+) of="\w+">\s*)?<(\w+) \/>/g)]
  return found.map(([, path, ...names]) => [
    path.replace(/:\w+/g, '[^/]+'),
    names.filter((name) => files.has(name)).map((name) => `src/${files.get(name)}.tsx`),
  ])
}

/** Files of modules, and of all that these import. A module that others import, too, has none of its own. */
function filesOf(manifest, modules, found = new Set()) {
  for (const { file, imports = [] } of modules.flatMap((one) => manifest[one] ?? []))
    if (!found.has(file)) filesOf(manifest, imports, found.add(file))
  return found
}

// With the network's own values, which these pages show first: `parseConfig`.
const AT_ONCE = { wallet: 'src/lib/checksum.ts', propose: 'src/lib/checksum.ts' }
const PROGRAM = /^ *<(?:script type="module"|link rel="modulepreload").*\n/gm
const preload = (file, paths, mark) =>
  `    <link rel="modulepreload" data-for="^(${paths.join('|')})$"${mark} crossorigin href="./${file}">\n`
const programs = {}
let page = ''
for (const language of ['en', ...languages.map((one) => one.name)]) {
  const [own, manifest] = await built(language, page === '')
  page ||= own.replace(PROGRAM, '')
  const first = own.match(PROGRAM)
  const has = filesOf(manifest, ['index.html'])
  const [later, withWallet] = [new Map(), new Map()]
  for (const [path, modules] of routes()) {
    const frame = filesOf(manifest, [...modules.slice(0, 1), AT_ONCE[path]])
    for (const file of new Set([...frame, ...filesOf(manifest, modules)])) {
      const of = frame.has(file) ? later : withWallet
      if (!has.has(file)) of.set(file, [...(of.get(file) ?? []), path])
    }
  }
  programs[language] = [
    ...first,
    ...[...later].map(([file, paths]) => preload(file, paths, '')),
    ...[...withWallet].map(([file, paths]) => preload(file, paths, ' data-wallet')),
  ]
}
rmSync(join(outDir, '.vite'), { recursive: true })
const templates = Object.entries(programs).map(
  ([language, lines]) => `    <template lang="${language}">\n${lines.join('')}    </template>\n`,
)
writeFileSync(
  join(outDir, 'index.html'),
  page.replace(/^ *<script +src=".\/first.js">/m, (first) => [...templates, first].join('')),
)
