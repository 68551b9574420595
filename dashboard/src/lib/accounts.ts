/** "0xC02a…6Cc2": enough to tell a few accounts apart, never enough to pay one. */
export function shortened(account: string): string {
  return account.length > 12 ? `${account.slice(0, 6)}…${account.slice(-4)}` : account
}

export function isAccount(text: string): boolean {
  return /^0x[0-9a-fA-F]{40}$/.test(text)
}

export function same(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && one.toLowerCase() === other?.toLowerCase()
}
