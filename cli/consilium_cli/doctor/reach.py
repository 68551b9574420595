"""Findings from facts about ports, certificates and servers: can others reach a role, and only as they should? Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from consilium_core.connectivity import FLOWER_AHEAD, FLOWER_BEHIND

from consilium_cli.doctor.findings import Findings, Level, fault, graded, ok, warning

SOON = 20  # days: programs that renew certificates do so thirty days before their end


class Held(StrEnum):
    FREE = "free"
    OURS = "ours"
    FOREIGN = "foreign"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True)
class Port:
    """A port of this machine for a role. `beyond`: another address than loopback at which a program listens on it,
    where none should.
    """

    what: str
    address: str
    held: Held
    beyond: str | None = None


def of_port(seen: Port) -> Findings:
    values = {"address": seen.address, "held": seen.held}
    if seen.beyond is not None:
        told = f"something listens on {seen.beyond}, and {seen.what} is for loopback alone"
        return fault("ports", told, "bind it to 127.0.0.1, or close the port to others", values)
    if seen.held is Held.FOREIGN:
        told = f"{seen.address}, wanted for {seen.what}, is held by something else"
        return fault("ports", told, "end what listens there, or configure another port", values)
    if seen.held is Held.FORBIDDEN:
        told = f"{seen.address}, wanted for {seen.what}, is not for this user to listen on"
        return fault("ports", told, "configure a port above 1,023, and let the proxy have 443", values)
    said = "is free" if seen.held is Held.FREE else f"answers as {seen.what}"
    return ok("ports", f"{seen.address} {said}", values)


@dataclass(frozen=True)
class CertificateFile:
    """A certificate on this machine; times in seconds since the epoch. `can_be_renewed`: its authority has a key."""

    what: str
    path: Path
    starts: float
    ends: float
    is_of_authority: bool
    fits_key: bool
    can_be_renewed: bool
    now: float


def of_certificate_file(seen: CertificateFile) -> Findings:
    values = {"path": str(seen.path), "days_left": _days(seen.ends - seen.now)}
    anew = f"move {seen.path.parent} away and start the role again, which makes another (docs/proxy.md)"
    renewed = "start the role again, which renews it" if seen.can_be_renewed else anew
    if not seen.is_of_authority:
        return fault("tls", f"{seen.what} {seen.path} is not of the authority beside it", anew, values)
    if not seen.fits_key:
        return fault("tls", f"{seen.what} {seen.path} does not fit the key beside it", renewed, values)
    return _validity(f"{seen.what} {seen.path}", seen.starts, seen.ends, seen.now, renewed, values)


def _validity(
    whose: str, starts: float, ends: float, now: float, remedy: str, values: Mapping[str, object], more: str = ""
) -> Findings:
    left = _days(ends - now)
    if now > ends:
        return fault("tls", f"{whose} ended {-left:g} days ago{more}", remedy, values)
    if now < starts:
        told = f"{whose} is not valid for another {_days(starts - now):g} days{more}"
        return fault("tls", told, f"set this machine's clock, or {remedy}", values)
    level = Level.WARNING if left < SOON else Level.OK
    return graded(level, "tls", f"{whose} is valid for another {left:g} days{more}", remedy, values)


def _days(seconds: float) -> float:
    return round(seconds / 86_400, 1)


@dataclass(frozen=True)
class Face:
    """A server as its clients see it. `why`: the reason where TLS fails. `ends`: of its certificate, else."""

    what: str
    address: str
    why: str | None = None
    tls: str = ""
    ends: float = 0.0
    now: float = 0.0


def of_face(seen: Face) -> Findings:
    who = f"{seen.what} {seen.address}"
    values: dict[str, object] = {"address": seen.address, "tls": seen.tls}
    if seen.why is not None:
        told, _, way_out = seen.why.partition(": ")
        return fault("tls", f"{who}: {told}", way_out, values)
    values["days_left"] = _days(seen.ends - seen.now)
    remedy = "have it renewed, and the proxy reloaded"
    return _validity(f"the certificate of {who}", 0.0, seen.ends, seen.now, remedy, values, f", {seen.tls}")


@dataclass(frozen=True)
class Answer:
    """An answer to a request from outside: HTTP's status, None for no answer. `ahead`: this machine's clock less the
    answer's Date, in seconds.
    """

    status: int | None
    ahead: float | None = None


@dataclass(frozen=True)
class SuperLinkFace:
    """A SuperLink as hospitals see it. `control`: the Control API's status by spelling. `is_own`: this role runs it."""

    address: str
    fleet: Answer
    control: Mapping[str, int | None]
    is_own: bool


def of_superlink(seen: SuperLinkFace) -> Findings:
    reached = {target: status for target, status in seen.control.items() if _is_reached(status)}
    found, values, api = _fleet(seen), {"control": dict(seen.control)}, f"the SuperLink's Control API at {seen.address}"
    told = f"{api} answers ({', '.join(reached)}): its clients can start and stop runs"
    if reached and seen.is_own:
        remedy = "put deploy/proxy before it, and let nothing else reach the SuperLink's port"
        found += fault("control", told, remedy, values)
    elif reached:
        remedy = "tell the aggregator's operator; this node runs no code that a run brings"
        found += warning("control", told, remedy, values)
    elif seen.fleet.status is not None:
        found += ok("control", f"{api} is refused in {len(seen.control)} spellings", values)
    return found if seen.fleet.ahead is None else found + _flower_clock(seen, seen.fleet.ahead)


def _is_reached(status: int | None) -> bool:
    """True for a status that is no refusal of a proxy's, and no sign that nothing is behind it."""
    return status is not None and status < 500 and status not in (400, 403, 404, 405, 410, 421)


def _fleet(seen: SuperLinkFace) -> Findings:
    status = seen.fleet.status
    values = {"address": seen.address, "status": status}
    if status == 401:  # to a client without a registered key
        return ok("superlink", f"{seen.address} answers as a SuperLink", values)
    if status is not None and status >= 500:
        told = f"{seen.address} answers {status}: nothing runs behind its proxy"
        return warning(
            "superlink", told, "start the aggregator" if seen.is_own else "wait, or ask its operator", values
        )
    told = f"{seen.address} answers {status or 'nothing'} where a SuperLink would ask for a node's key"
    own, other = "let the proxy pass /v1/fleet/ on (deploy/proxy)", "check the address that was approved"
    return fault("superlink", told, own if seen.is_own else other, values)


def _flower_clock(seen: SuperLinkFace, ahead: float) -> Findings:
    than = "later" if ahead >= 0 else "earlier"
    said = f"this machine's clock is {abs(ahead):.0f} s {than} than that of {seen.address}"
    values = {"ahead_s": round(ahead, 1), "address": seen.address}
    if not -FLOWER_BEHIND < ahead < FLOWER_AHEAD:
        told = f"{said}, which refuses nodes {FLOWER_AHEAD} s before and {FLOWER_BEHIND} s behind it"
        return fault("clock", told, "set the clocks (`timedatectl set-ntp true`)", values)
    return ok("clock", said, values)


@dataclass(frozen=True)
class NodeKey:
    """A hospital's node key for a task. `is_announced`: the chain has this very key; None if it has not joined."""

    task: int
    path: Path
    is_announced: bool | None


def of_node_key(seen: NodeKey) -> Findings:
    values = {"task": seen.task, "path": str(seen.path)}
    if seen.is_announced is None:
        told = f"task {seen.task} is approved here, and this account has not joined it"
        return warning("node-key", told, "join it, or leave it (consilium hospital leave)", values)
    if not seen.is_announced:
        told = f"{seen.path} is not the node key that was announced for task {seen.task}: its SuperLink refuses it"
        return fault("node-key", told, "restore that key: a task's hospitals keep theirs", values)
    return ok("node-key", f"the node key is the one announced for task {seen.task}", values)


@dataclass(frozen=True)
class Public:
    """A public address of a role. `right`: statuses by which the role answers. `exposed`: private paths of it."""

    what: str
    url: str
    status: int | None
    right: Sequence[int]
    exposed: Sequence[str] = ()


def of_public(seen: Public) -> Findings:
    values = {"url": seen.url, "status": seen.status}
    if seen.status in seen.right:
        found = ok("public", f"{seen.what} answers at {seen.url}", values)
    elif seen.status is not None and seen.status >= 500:
        told = f"{seen.url} answers {seen.status}: {seen.what} does not run behind its proxy"
        found = warning("public", told, "start it, and see that the proxy has its port", values)
    else:
        told = f"{seen.url} answers {seen.status or 'nothing'} where {seen.what} should"
        found = fault("public", told, "check the name, the proxy and the firewall before it", values)
    if seen.exposed:
        told = f"{', '.join(seen.exposed)} of {seen.what} is for everybody at {seen.url}"
        found += warning("public", told, "let the proxy keep it to itself (deploy/proxy)", values)
    return found


def of_link(what: str, url: str, has_password: bool = False) -> Findings:
    """A warning for a URL of another machine without TLS. `url` may hold secrets: they are not shown."""
    parts = urlsplit(url)
    host, scheme = parts.hostname or "", parts.scheme.partition("+")[0]
    is_plain = scheme in ("http", "redis") or (scheme.startswith("postgres") and "sslmode" not in parts.query)
    if not is_plain or not host or _is_near(host):
        return []
    told = f"{what} at {host} is reached by {scheme}:// without TLS" + (", password included" if has_password else "")
    way_out = {"redis": "rediss://", "http": "https://"}.get(scheme, "?sslmode=verify-full")
    return warning("links", told, f"write {way_out} in its URL", {"host": host, "scheme": scheme})


def _is_near(host: str) -> bool:
    """True for this machine, a neighbour container by its bare name, or an address that no other network reaches."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".internal"))
    return address.is_loopback or address.is_private or address.is_link_local
