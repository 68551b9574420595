/** The profile that an account signed; nothing without one. */
import { useQuery } from '@tanstack/react-query'
import { profile } from '../api/profiles'
import { LOCALE } from '../lib/language'
import * as say from '../strings'
import { Facts, Time } from './basics'

const words = say.profile
const countries = new Intl.DisplayNames([LOCALE], { type: 'region' })

export function Who({ of }: { of: string }) {
  const { data: found } = useQuery(profile(of))
  const shown = found && [
    ['name', <bdi key="name">{found.name}</bdi>] as const,
    ['institution', <bdi key="institution">{found.institution}</bdi>] as const,
    ['country', countries.of(found.country || 'ZZ')] as const,
    [
      'site',
      <a key="site" href={found.site} target="_blank" rel="noreferrer ugc">
        {found.site}
      </a>,
    ] as const,
    [
      'contact',
      <a key="contact" href={`mailto:${found.contact}`}>
        {found.contact}
      </a>,
    ] as const,
  ]
  if (!found || !shown) return null
  return (
    <section className="card" aria-label={words.title}>
      <Facts of={shown.filter(([field]) => found[field] !== '').map(([field, value]) => [words[field], value])} />
      <p className="soft small">
        {words.means} <Time of={found.updated_at} />
      </p>
    </section>
  )
}
