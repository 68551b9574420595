/** The language of this build's texts. */

export const LANGUAGE = __LANGUAGE__

/** Each language in its own name, by its folder in `strings`. */
export const LANGUAGES = [
  ['en', 'English'],
  ['de', 'Deutsch'],
  ['es', 'Español'],
  ['fr', 'Français'],
] as const

/** The reader's region, if the browser has one of this language: Swiss numbers beside German words. */
export const LOCALE = regionOf(LANGUAGE, typeof navigator === 'undefined' ? [] : navigator.languages)

export function regionOf(language: string, wanted: readonly string[]): string {
  return wanted.find((tag) => tag.split('-')[0] === language) ?? language
}

/** A function that chooses the word for a number, by the language's own rules. */
export function pluralIn(language: string) {
  const rules = new Intl.PluralRules(language)
  return (n: number | bigint, one: string, other: string) => (rules.select(Number(n)) === 'one' ? one : other)
}

/** Opens the page anew in another language, which stays. */
export function speak(language: string): void {
  localStorage.setItem('language', language)
  location.reload()
}
