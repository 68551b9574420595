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
document.addEventListener('DOMContentLoaded', () => {
  document.head.append(...built.filter(({ lang }) => lang === language).map(({ content }) => content))
})
