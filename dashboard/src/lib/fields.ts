/** A field of a value from outside; undefined if it is not an object, or has no such field. */
export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value ? Reflect.get(value, name) : undefined
}
