/** The parts that most pages are made of. */
import { useQuery } from '@tanstack/react-query'
import { createContext, Fragment, Suspense, useContext, useEffect, useId, useState, type ReactNode } from 'react'
import { Link } from 'react-router'
import type { Phase, Role, Schemas } from '../api/client'
import { profile } from '../api/profiles'
import { ApiUnreachable } from '../api/client'
import { shortened } from '../lib/accounts'
import { formatExactly, formatTokens } from '../lib/amounts'
import { messageOf } from '../lib/errors'
import { formatDistance, formatDuration, formatTime, formatUtc } from '../lib/times'
import * as say from '../strings'

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

/** The path to a page: of a task and its rounds, of a node with a role, or of a model for sale. */
export function Crumbs(of: { task: number } | { role: Role } | { market: true }) {
  const links =
    'market' in of
      ? [['/market', say.nav.market]]
      : 'role' in of
        ? [[`/nodes?role=${of.role}`, say.roles[of.role]]]
        : [
            ['/tasks', say.tasks.title],
            [`/tasks/${of.task}`, say.tasks.unnamed(of.task)],
          ]
  return (
    <nav className="crumbs" aria-label={say.nav.crumbs}>
      <ol>
        {links.map(([path = '', name]) => (
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

/** The token's symbol, if it is known. A page has hundreds of amounts: none of them asks for it by itself. */
export const TokenSymbol = createContext<string | null>(null)

/** An amount with two digits; on hover with all of them. Undefined: it is not read yet. `isExact`: with all in sight. */
export function Tokens({ of, isExact = false }: { of: string | bigint | undefined; isExact?: boolean }) {
  const symbol = useContext(TokenSymbol)
  if (of === undefined) return <span className="soft">{say.unread}</span>
  const amount = BigInt(of)
  return (
    <span className={isExact ? 'wrap' : ''} title={`${formatExactly(amount)} ${symbol ?? say.tokens}`}>
      {isExact ? formatExactly(amount) : formatTokens(amount)}
      {symbol && ` ${symbol}`}
    </span>
  )
}

/** A link to an account: its name, if it signed a profile or has a verified one, and always its address. The mark of a
 * verified name stands behind the address, where no name can imitate it.
 */
export function Account({ of, as: role }: { of: string; as?: Role | null }) {
  const { data: found } = useQuery(profile(of))
  const name = found?.profile?.name ?? found?.ens?.name ?? found?.domain?.name
  const verified = found?.domain ?? (found?.profile ? null : found?.ens)
  return (
    <Link className="named account" title={of} to={role ? `/nodes/${of}/${role}` : `/accounts/${of}`}>
      {name && <bdi className="clip">{name}</bdi>}
      <span className="mono">{shortened(of)}</span>
      {verified && (
        <span className="good" role="img" aria-label={say.profile.verifies[verified.kind](verified.name)}>
          ✓
        </span>
      )}
    </Link>
  )
}

/** A link to a task, or to one of its rounds. */
export function TaskLink({ task, round = null }: { task: number; round?: number | null }) {
  if (round === null) return <Link to={`/tasks/${task}`}>{say.tasks.unnamed(task)}</Link>
  return <Link to={`/tasks/${task}/rounds/${round}`}>{say.round.title(round, task)}</Link>
}

/** The kind of a payment, or of another event in an account's history. */
export function Kind({ of }: { of: Schemas['Entry']['kind'] }) {
  return <span className={of === 'slash' ? 'bad' : ''}>{say.kind[of]}</span>
}

/** The reason for a payment; empty without one. */
export function Reason({ of }: { of: Schemas['Payment']['reason'] }) {
  return of ? say.reason[of] : ''
}

export function Hash({ of }: { of: string }) {
  return (
    <code title={of}>
      {of.slice(0, 10)}…{of.slice(-6)}
    </code>
  )
}

/** A time on the reader's clock; on hover in UTC. */
export function Time({ of }: { of: number }) {
  return (
    <time dateTime={formatUtc(of)} title={formatUtc(of)}>
      {formatTime(of)}
    </time>
  )
}

/** The present time in seconds since the epoch, updated every second. */
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
    <time className="clock" dateTime={formatUtc(of)} title={say.both(formatTime(of), formatUtc(of))}>
      {formatDistance(of, now)}
    </time>
  )
}

export function Countdown({ to, phase }: { to: number; phase: Phase }) {
  const now = useNow()
  if (phase === 'ended' || phase === 'none') return null
  // A dead beacon ends the task after a week, a live one takes minutes. So that deadline says nothing to a reader.
  if (to === 0 && (phase === 'forming' || phase === 'committing')) return <span>{say.task.starting}</span>
  if (to === 0 || phase === 'forming' || phase === 'drawing') return <span>{say.task.noDeadline}</span>
  if (to <= now) return <span className="bad">{say.task.overdue}</span>
  return (
    <span className="clock" role="timer" title={say.both(formatTime(to), formatUtc(to))}>
      {formatDuration(to - now)}
    </span>
  )
}

export function PhaseBadge({ phase }: { phase: Phase }) {
  const kind = phase === 'ended' ? '' : phase === 'disputing' ? 'bad' : phase === 'joining' ? 'wait' : 'good'
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

/** A text in which commands stand between backticks. */
export function Coded({ text }: { text: string }) {
  return text.split('`').map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))
}

export function Facts({ of }: { of: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {of.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}

/** `isTall`: the rest of the page stays out of sight until this has loaded, so that nothing jumps. */
export function Loading({ isTall = false }: { isTall?: boolean }) {
  return (
    <div className={isTall ? 'loading tall' : 'loading'} role="status">
      {say.loading}…
    </div>
  )
}

/** True in a task of the browser's own after the upper part of a page, so that a slow phone reacts between two.
 * `after`: true once the upper part has its height, so that nothing moves under a finger.
 */
export function useLater(after: boolean): boolean {
  const [isDue, setDue] = useState(false)
  useEffect(() => {
    if (!after) return
    const timer = setTimeout(() => setDue(true))
    return () => clearTimeout(timer)
  }, [after])
  return isDue
}

/** The lower part of a page, laid out after the upper part. */
export function Later({ after = true, children }: { after?: boolean; children: ReactNode }) {
  return useLater(after) ? children : null
}

/** What is made once somebody opens it, because hundreds of rows cost a slow phone seconds. `isMade`: it is there anyway. */
export function Unfold({ title, isMade, children }: { title: string; isMade?: boolean; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {(isOpen || isMade) && children}
    </details>
  )
}

/** A button that shows its lazily loaded children. */
export function OnDemand(props: { open: string; isMain?: boolean; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  if (isOpen) return <Suspense fallback={<Loading />}>{props.children}</Suspense>
  return (
    <div>
      <button type="button" className={props.isMain ? 'main' : ''} onClick={() => setOpen(true)}>
        {props.open}
      </button>
    </div>
  )
}

/** Something that needs attention. */
export function Notice({ kind, children }: { kind: 'good' | 'wait' | 'bad'; children: ReactNode }) {
  return (
    <p className={`notice ${kind}`} {...(kind === 'bad' ? { role: 'alert' } : {})}>
      {children}
    </p>
  )
}

export function Fault({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div className="notice bad" role="alert">
      <span>{error instanceof ApiUnreachable ? say.unreachable : say.faulty(messageOf(error))}</span>
      {retry && (
        <button type="button" onClick={retry}>
          {say.retry}
        </button>
      )}
    </div>
  )
}
