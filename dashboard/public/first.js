// Before anything is painted: the theme and the language that were chosen here, if any were.
const kept = (name) => {
  try {
    return localStorage.getItem(name)
  } catch {
    return null // storage is forbidden: the system's theme and the browser's language
  }
}
const root = document.documentElement
if (['light', 'dark'].includes(kept('theme'))) root.dataset.theme = kept('theme')

// A template holds the program in its language; `vite dev` has no templates.
const built = [...document.querySelectorAll('template')]
const wanted = [kept('language'), ...navigator.languages].map((tag) => tag?.split('-')[0])
const language = wanted.find((one) => built.some(({ lang }) => lang === one)) ?? 'en'
root.lang = language
const path = location.hash.replace(/^#\/|\?.*$/g, '')

// A page's first questions to the API, as src/api/queries.ts asks them, do not wait for the program.
const first = [
  [/^$/, 'tasks?sort=-task&limit=25'],
  [/^tasks$/, 'tasks?limit=25&sort=-task'],
  [/^tasks\/\d+$/, '$&'],
  [/^(tasks\/\d+)\/rounds\/\d+$/, '$& $1'],
  [/^nodes\/0x[\da-fA-F]{40}\/\w+$/, '$&?days=30'],
].find(([pattern]) => pattern.test(path))
for (const question of first && !location.hash.includes('?')
  ? [...path.replace(...first).split(' '), 'network']
  : ['network']) {
  const link = Object.assign(document.createElement('link'), { rel: 'preload', as: 'fetch', crossOrigin: '' })
  link.href = `./v1/${question}`
  document.head.append(link)
}
document.addEventListener('DOMContentLoaded', () => {
  for (const { content } of built.filter(({ lang }) => lang === language)) {
    for (const link of content.querySelectorAll('[data-for]')) if (!RegExp(link.dataset.for).test(path)) link.remove()
    document.head.append(content)
  }
})
