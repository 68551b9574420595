/** Builds the dashboard once in each language, with its own folder in place of src/strings. A page then loads no text of
 * another language, and none of a page that is not open. One index.html holds them all; public/first.js chooses.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build, resolveConfig } from 'vite'

const { values: given } = parseArgs({ options: { outDir: { type: 'string' }, logLevel: { type: 'string' } } })
const outDir = given.outDir ?? (await resolveConfig({}, 'build')).build.outDir
const strings = resolve('src/strings')
const languages = readdirSync(strings, { withFileTypes: true }).filter((one) => one.isDirectory())

/** The index.html of one language. Files that are the same in all have one name, and stay. */
async function built(language, isFirst) {
  const words = language === 'en' ? strings : join(strings, language)
  await build({
    logLevel: given.logLevel,
    define: { __LANGUAGE__: JSON.stringify(language) },
    resolve: { alias: [{ find: /^(?:\.\.?\/)+strings(?=\/|$)/, replacement: words }] },
    build: { outDir, emptyOutDir: isFirst },
  })
  return readFileSync(join(outDir, 'index.html'), 'utf8')
}

const PROGRAM = /^ *<(?:script type="module"|link rel="modulepreload").*\n/gm
const templates = []
let page = ''
for (const language of ['en', ...languages.map((one) => one.name)]) {
  const own = await built(language, page === '')
  page ||= own.replace(PROGRAM, '')
  templates.push(`    <template lang="${language}">\n${own.match(PROGRAM).join('')}    </template>\n`)
}
writeFileSync(
  join(outDir, 'index.html'),
  page.replace(/^ *<script +src=".\/first.js">/m, (first) => templates.join('') + first),
)
