import { startTransition, useEffect, useId, useState, type ReactNode } from 'react'
import { Link } from 'react-router'
import type { Phase, Role, Schemas } from '../api/client'
import { ApiUnreachable } from '../api/client'
import { shortened } from '../lib/accounts'
import { formatExactly, formatTokens } from '../lib/amounts'
import { formatDistance, formatDuration, formatTime } from '../lib/times'
import { say } from '../strings'

export function Page(props: {
  title: string
  lead?: ReactNode
  crumbs?: ReactNode
  beside?: ReactNode
  children: ReactNode
}) {
  useEffect(() => {
    document.title = `${props.title} · ${say.name}`
  }, [props.title])
  return (
    <>
      <header className="head">
        {props.crumbs}
        <div className="row">
          <h1>
            <bdi>{props.title}</bdi>
          </h1>
          {props.beside}
        </div>
        {props.lead && <p className="lead">{props.lead}</p>}
      </header>
      {props.children}
    </>
  )
}

export function Crumbs({ to }: { to: readonly (readonly [string, string])[] }) {
  return (
    <nav className="crumbs" aria-label="Where this is">
      <ol>
        {to.map(([path, name]) => (
          <li key={path}>
            <Link to={path}>{name}</Link>
          </li>
        ))}
      </ol>
    </nav>
  )
}

export function Card({ title, means, children }: { title: string; means?: ReactNode; children: ReactNode }) {
  const id = useId()
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {means && <p className="soft small">{means}</p>}
      {children}
    </section>
  )
}

/** Two digits to read, and all of them on hover. */
export function Tokens({ of }: { of: string | bigint }) {
  const amount = BigInt(of)
  return <span title={`${formatExactly(amount)} tokens`}>{formatTokens(amount)}</span>
}

export function Account({ of, as: role }: { of: string; as?: Role }) {
  return (
    <Link className="mono" title={of} to={role ? `/nodes/${of}/${role}` : `/accounts/${of}`}>
      {shortened(of)}
    </Link>
  )
}

export function Hash({ of }: { of: string }) {
  return (
    <code title={of}>
      {of.slice(0, 10)}…{of.slice(-6)}
    </code>
  )
}

export function Time({ of }: { of: number }) {
  return <time dateTime={new Date(of * 1000).toISOString()}>{formatTime(of)}</time>
}

/** Seconds since the epoch, once a second. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now() / 1000)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000)
    return () => clearInterval(timer)
  }, [])
  return now
}

export function Ago({ of }: { of: number }) {
  const now = useNow()
  return (
    <time className="clock" dateTime={new Date(of * 1000).toISOString()} title={formatTime(of)}>
      {formatDistance(of, now)}
    </time>
  )
}

export function Countdown({ to, phase }: { to: number; phase: Phase }) {
  const now = useNow()
  if (phase === 'ended' || phase === 'none') return null
  // A beacon that died ends the task after a week. One that lives takes minutes: the week says nothing to a reader.
  if (to === 0 || phase === 'forming' || phase === 'drawing') return <span>{say.task.noDeadline}</span>
  if (to <= now) return <span className="bad">{say.task.overdue}</span>
  return (
    <span className="clock" role="timer" title={formatTime(to)}>
      {formatDuration(to - now)}
    </span>
  )
}

export function PhaseBadge({ phase }: { phase: Phase }) {
  const kind = phase === 'ended' ? '' : phase === 'blaming' ? 'bad' : phase === 'joining' ? 'wait' : 'good'
  return (
    <span className={`badge ${kind}`} title={say.phaseMeans[phase]}>
      {say.phase[phase]}
    </span>
  )
}

export function OutcomeBadge({ of }: { of: Schemas['RoundSummary'] }) {
  const kind = of.outcome === 'settled' ? 'good' : of.outcome === 'void' ? 'bad' : 'wait'
  const why = say.voidReason[of.void_reason]
  return (
    <>
      <span className={`badge ${kind}`}>{of.phase ? say.phase[of.phase] : say.outcome[of.outcome]}</span>
      {why && <span className="small soft"> {why}</span>}
    </>
  )
}

export function Figure({ name, value, beside }: { name: string; value: ReactNode; beside?: ReactNode }) {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd>{value}</dd>
      {beside !== undefined && <dd>{beside}</dd>}
    </div>
  )
}

export function Facts({ of }: { of: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {of.map(([name, value]) => (
        <FactRow key={name} name={name} value={value} />
      ))}
    </dl>
  )
}

function FactRow({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  )
}

/** `isTall`: what follows on the page stays out of sight until it is there, so that nothing jumps. */
export function Loading({ isTall = false }: { isTall?: boolean }) {
  return (
    <div className={isTall ? 'loading tall' : 'loading'} role="status">
      {say.loading}…
    </div>
  )
}

/** What lies below what is seen first: laid out after it, in small steps, so that a slow phone answers meanwhile. */
export function Later({ children }: { children: ReactNode }) {
  const [isDue, setDue] = useState(false)
  useEffect(() => startTransition(() => setDue(true)), [])
  return isDue ? children : null
}

export function Fault({ error, retry }: { error: unknown; retry?: () => void }) {
  const words =
    error instanceof ApiUnreachable
      ? say.unreachable
      : say.faulty(error instanceof Error ? error.message : String(error))
  return (
    <div className="notice bad" role="alert">
      <span>{words}</span>
      {retry && (
        <button type="button" onClick={retry}>
          {say.retry}
        </button>
      )}
    </div>
  )
}
