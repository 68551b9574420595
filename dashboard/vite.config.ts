import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

const VERSION = /^version = "(.+)"$/m.exec(readFileSync('../pyproject.toml', 'utf8'))?.[1] ?? 'unknown'

interface Graph {
  getModuleInfo(id: string): { importedIds: string[] } | null
}

/** What the program needs before it shows a page. */
function firstModules(graph: Graph, id = resolve('src/app.tsx'), found = new Set<string>()) {
  if (!found.has(id))
    for (const one of graph.getModuleInfo(id)?.importedIds ?? []) firstModules(graph, one, found.add(id))
  return found
}

export default defineConfig({
  define: { __VERSION__: JSON.stringify(VERSION), __LANGUAGE__: JSON.stringify('en') }, // others: scripts/build.mjs
  base: './', // served from any folder of any site
  build: {
    target: 'es2022',
    outDir: '../server/consilium_server/dashboard', // a part of the Python package
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy has no `data:`
    modulePreload: { polyfill: false }, // which would be an inline script
    // Few files: over HTTP/1.1 a browser asks for six at a time. `vendor` is the same in all languages and versions. Pages
    // without a wallet load nothing of one.
    rolldownOptions: {
      // React Router looks for what only some versions of React have; wagmi marks modules of a server's React.
      checks: { importIsUndefined: false, moduleLevelDirective: false },
      output: {
        codeSplitting: {
          groups: [
            {
              name: 'vendor',
              test: /node_modules\/(?:preact|react|react-dom|react-router|openapi-fetch|@tanstack)\//,
            },
            {
              debugName: 'base',
              name: (id, graph) => (firstModules(graph).has(id) ? 'base' : null),
              test: /\/src\//,
            },
            { name: 'shared', test: /\/src\/(?:api|lib|parts|strings)\/(?!wallets)/, minShareCount: 3 },
          ],
        },
      },
    },
  },
  worker: { format: 'es' },
  test: { testTimeout: 60_000, hookTimeout: 60_000, teardownTimeout: 60_000 }, // a busy machine takes ten times as long as an idle one
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/config.json': 'http://127.0.0.1:8080' } },
})
