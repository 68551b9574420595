/** A field of a value from outside; undefined if it is not an object, or has no such field. */
export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value ? Reflect.get(value, name) : undefined
}

/** True if a text from outside is one of an object's own keys. `in` would also accept "constructor". */
export function isKey<T extends object>(text: unknown, of: T): text is keyof T & string {
  return typeof text === 'string' && Object.hasOwn(of, text)
}
