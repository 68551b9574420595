/** The profile that an account signed, and its verified names; nothing without any. */
import { useQuery } from '@tanstack/react-query'
import { profile } from '../api/profiles'
import { LOCALE } from '../lib/language'
import * as say from '../strings'
import { Facts, Time } from './basics'

const words = say.profile
const countries = new Intl.DisplayNames([LOCALE], { type: 'region' })

export function Who({ of }: { of: string }) {
  const { data: known } = useQuery(profile(of))
  if (!known) return null
  const { profile: found, domain, ens } = known
  const texts = found && [
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
  const verified = [domain, ens].filter((one) => one !== null)
  return (
    <section className="card" aria-label={words.title}>
      <Facts
        of={[
          ...verified.map(({ kind, name, verified_at }) => {
            const value = (
              <>
                <b className="good">✓ {name}</b>{' '}
                <span className="soft small">
                  {words.asked[kind]} <Time of={verified_at} />
                </span>
              </>
            )
            return [words.verified[kind], value] as const
          }),
          ...(texts ?? [])
            .filter(([field]) => found?.[field] !== '')
            .map(([field, value]) => [words[field], value] as const),
        ]}
      />
      {found && (
        <p className="soft small">
          {words.means} <Time of={found.updated_at} />
        </p>
      )}
    </section>
  )
}
