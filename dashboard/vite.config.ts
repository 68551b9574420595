import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  base: './', // served from any folder of any site
  plugins: [react()],
  build: {
    target: 'es2022',
    outDir: '../server/consilium_server/dashboard', // a part of the Python package
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy has no `data:`
    modulePreload: { polyfill: false }, // which would be an inline script
  },
  worker: { format: 'es' },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/config.json': 'http://127.0.0.1:8080' } },
})
