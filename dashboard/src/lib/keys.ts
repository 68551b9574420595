/** Whether a text from outside is one of an object's own keys; `in` would take "constructor" for one, too. */
export function isKey<T extends object>(text: unknown, of: T): text is keyof T & string {
  return typeof text === 'string' && Object.hasOwn(of, text)
}
