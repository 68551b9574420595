/** A short form such as "0xC02a…6Cc2". It tells a few accounts apart, and is not enough to pay one. */
export function shortened(account: string): string {
  return account.length > 12 ? `${account.slice(0, 6)}…${account.slice(-4)}` : account
}

export function isAccount(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text)
}

export function same(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && one.toLowerCase() === other?.toLowerCase()
}

export const MOST_COMPARED = 4 // nodes side by side

/** The nodes that an address of the dashboard names, without doubles. */
export function chosenOf(text: string | null): string[] {
  const nodes = (text ?? '').split(',').filter(isAccount)
  return nodes.filter((one, at) => nodes.findIndex((other) => same(one, other)) === at).slice(0, MOST_COMPARED)
}
