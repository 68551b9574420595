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
