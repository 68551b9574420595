/** Texts of profiles and of the search. */
export const profile = {
  title: 'Profile',
  name: 'Name',
  institution: 'Institution',
  country: 'Country',
  site: 'Site',
  contact: 'Contact',
  means: 'This account signed these texts about itself. Only verified lines were checked. Signed',
  verified: { domain: 'Verified domain', ens: 'Verified ENS name' },
  asked: { domain: 'A file there names this address. Asked', ens: 'The name leads to this address. Asked' },
  verifies: {
    domain: (host: string) => `${host} verifies this address`,
    ens: (name: string) => `ENS verifies ${name}`,
  },
  verify: (account: string, file: string) =>
    `To verify the site, put \`${account}\` on a line of \`${file}\`. A server that verifies names asks soon after each publication, then once an hour.`,
  open: 'Set the public profile…',
  lead: 'All pages show this name beside your address. Your wallet signs it, and no transaction is sent. Leave a field empty to show none.',
  hints: {
    name: 'at most 60 characters, in one script',
    institution: 'at most 100 characters, in one script',
    country: 'two letters, such as DE',
    site: 'https://…',
    contact: 'an e-mail address',
  },
  sign: 'Sign and publish',
  signing: 'Your wallet asks for a signature…',
  done: 'The profile is published.',
  contract: 'This account is a contract. A profile needs the signature of an account’s own key.',
}

export const search = {
  title: 'Search',
  lead: 'An address or its beginning, a name, a task’s or an ensemble’s number, or a transaction’s hash.',
  label: 'Search for',
  none: 'Nothing was found.',
  found: (many: number) => (many === 20 ? 'The first 20 results' : many === 1 ? '1 result' : `${many} results`),
  transaction: 'Transaction',
  ofAccount: 'an event of',
  with: 'with',
}
