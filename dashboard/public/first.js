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

// A page's first questions, as src/api asks them, do not wait for the program.
const first = [
  [/^$/, 'v1/tasks?sort=-task&limit=25'],
  [/^tasks$/, 'v1/tasks?limit=25&sort=-task'],
  [/^tasks\/\d+$/, 'v1/$& v1/$&/rounds?limit=200'],
  [/^(tasks\/\d+)\/rounds\/\d+$/, 'v1/$& v1/$1'],
  [/^nodes$/, 'v1/nodes?limit=50&role=hospital&sort=-yield&days=30'],
  [/^nodes\/0x[\da-fA-F]{40}\/\w+$/, 'v1/$&'],
  [/^accounts\/(0x[\da-fA-F]{40})$/, 'v1/delegations?delegator=$1&limit=50'],
  [/^propose$/, 'config.json v1/task-schema'],
  [/^wallet$/, 'config.json'],
].find(([pattern]) => pattern.test(path))
for (const question of first && !location.hash.includes('?')
  ? [...path.replace(...first).split(' '), 'v1/network']
  : ['v1/network']) {
  const link = Object.assign(document.createElement('link'), { rel: 'preload', as: 'fetch', crossOrigin: '' })
  link.href = `./${question}`
  document.head.append(link)
}

// The wallet's library is larger than all else, and most readers have no wallet: src/parts/wallets.tsx looks as this does.
const findWallet = () => {
  let isThere = 'ethereum' in window
  const hear = () => (isThere = true)
  window.addEventListener('eip6963:announceProvider', hear)
  window.dispatchEvent(new Event('eip6963:requestProvider')) // wallets answer before this returns
  window.removeEventListener('eip6963:announceProvider', hear)
  return isThere
}
let hasWallet
document.addEventListener('DOMContentLoaded', () => {
  const isWanted = ({ dataset }) =>
    RegExp(dataset.for).test(path) && (dataset.wallet === undefined || (hasWallet ??= findWallet()))
  for (const { content } of built.filter(({ lang }) => lang === language)) {
    for (const link of content.querySelectorAll('[data-for]')) if (!isWanted(link)) link.remove()
    document.head.append(content)
  }
})
