"""Findings from facts about ports, certificates and servers: can others reach a role, and only as they should? Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from consilium_core.connectivity import FLOWER_AHEAD, FLOWER_BEHIND, FleetAnswer

from consilium_operators.doctor.findings import Findings, Level, fault, graded, ok, warning

SOON = 20  # days: programs that renew certificates do so thirty days before their end


class Held(StrEnum):
    FREE = "free"
    OURS = "ours"
    FOREIGN = "foreign"
    FORBIDDEN = "forbidden"


def judge_port(what: str, address: str, held: Held, beyond: str | None = None) -> Findings:
    """A port of this machine for a role. `beyond`: an address that others reach, on which a program listens although
    the port is for loopback only.
    """
    values = {"address": address, "held": held}
    if beyond is not None:
        says = f"a program listens on {beyond}, but {what} is for loopback only"
        return fault("ports", says, "bind it to 127.0.0.1, or close the port to others", values)
    if held is Held.FOREIGN:
        says = f"{address}, the port of {what}, is used by another program"
        return fault("ports", says, "end that program, or configure another port", values)
    if held is Held.FORBIDDEN:
        says = f"this user may not listen on {address}, the port of {what}"
        return fault("ports", says, "configure a port above 1,023, and leave 443 to the proxy", values)
    return ok("ports", f"{address} {'is free' if held is Held.FREE else f'answers as {what}'}", values)


def judge_certificate(
    what: str, path: Path, starts: float, ends: float, now: float, *, is_of_authority: bool, fits_key: bool,
    can_be_renewed: bool,
) -> Findings:  # fmt: skip
    """A certificate on this machine. Times: seconds since the epoch. `can_be_renewed`: the authority's key is here."""
    values = {"path": str(path), "days_left": _days(ends - now)}
    replaced = f"move {path.parent} away and start the role again, which makes another (docs/proxy.md)"
    renewed = "start the role again, which renews it" if can_be_renewed else replaced
    if not is_of_authority:
        return fault("tls", f"{what} {path} is not signed by the authority beside it", replaced, values)
    if not fits_key:
        return fault("tls", f"{what} {path} does not fit the key beside it", renewed, values)
    return _validity(f"{what} {path}", starts, ends, now, renewed, values)


def _validity(
    whose: str, starts: float, ends: float, now: float, remedy: str, values: Mapping[str, object], more: str = ""
) -> Findings:
    left = _days(ends - now)
    if now > ends:
        return fault("tls", f"{whose} ended {-left:g} days ago{more}", remedy, values)
    if now < starts:
        says = f"{whose} is not valid for another {_days(starts - now):g} days{more}"
        return fault("tls", says, f"set this machine's clock, or {remedy}", values)
    level = Level.WARNING if left < SOON else Level.OK
    return graded(level, "tls", f"{whose} is valid for another {left:g} days{more}", remedy, values)


def _days(seconds: float) -> float:
    return round(seconds / 86_400, 1)


@dataclass(frozen=True)
class TlsServer:
    """A server as its clients see it. `why`: the reason if TLS fails; otherwise its version, and its certificate's
    end. Times in seconds since the epoch.
    """

    address: str
    why: str | None = None
    tls: str = ""
    ends: float = 0.0
    now: float = 0.0


def judge_tls(what: str, seen: TlsServer) -> Findings:
    who = f"{what} {seen.address}"
    values: dict[str, object] = {"address": seen.address, "tls": seen.tls}
    if seen.why is not None:
        why, _, remedy = seen.why.partition(": ")
        return fault("tls", f"{who}: {why}", remedy, values)
    values["days_left"] = _days(seen.ends - seen.now)
    remedy = "ask its operator to renew it, and to reload the proxy"
    return _validity(f"the certificate of {who}", 0.0, seen.ends, seen.now, remedy, values, f", {seen.tls}")


def judge_superlink(
    address: str, fleet: FleetAnswer, control: Mapping[str, int | None], is_own: bool, task: str | None
) -> Findings:
    """A SuperLink as hospitals see it. `control`: the Control API's status by spelling of its path. `is_own`: this role
    runs it. `task`: the one that it should serve, by `folder_name`, if known.
    """
    reached = {target: status for target, status in control.items() if _is_reached(status)}
    found, values = _fleet(address, fleet, is_own, task), {"control": dict(control)}
    api = f"the SuperLink's Control API at {address}"
    says = f"{api} answers ({', '.join(reached)}): its clients can start and stop runs"
    if reached and is_own:
        remedy = "put deploy/proxy before it, and close the SuperLink's port to all others"
        found += fault("control", says, remedy, values)
    elif reached:
        remedy = "tell the aggregator's operator; this node runs no code from a run"
        found += warning("control", says, remedy, values)
    elif fleet.status is not None:
        found += ok("control", f"{api} is refused in {len(control)} spellings", values)
    return found if fleet.ahead is None else found + _flower_clock(address, fleet.ahead)


def _is_reached(status: int | None) -> bool:
    """False for a proxy's refusal, and if nothing runs behind the proxy."""
    return status is not None and status < 500 and status not in (400, 403, 404, 405, 410, 421)


def _fleet(address: str, fleet: FleetAnswer, is_own: bool, task: str | None) -> Findings:
    status = fleet.status
    values = {"address": address, "status": status}
    if None not in (fleet.task, task) and fleet.task != task:
        own, other = (
            "give hospitals the port of this task (consilium server aggregators)",
            "ask its operator for this task's",
        )
        return fault("superlink", f"{address} is the address of another task", own if is_own else other, values)
    if status == 401:  # to a client without a registered key
        return ok("superlink", f"{address} answers as a SuperLink", values)
    if status is not None and status >= 500:
        remedy = "start the aggregator" if is_own else "wait, or ask its operator"
        return warning("superlink", f"{address} answers {status}: nothing runs behind its proxy", remedy, values)
    says = f"{address} answers {status or 'nothing'}, but a SuperLink would ask for a node's key (401)"
    own, other = "let the proxy pass /v1/fleet/ on (deploy/proxy)", "check the address that was approved"
    return fault("superlink", says, own if is_own else other, values)


def _flower_clock(address: str, ahead: float) -> Findings:
    says = f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead >= 0 else 'behind'} that of {address}"
    values = {"ahead_s": round(ahead, 1), "address": address}
    if not -FLOWER_BEHIND < ahead < FLOWER_AHEAD:
        says += f", which refuses nodes that are {FLOWER_AHEAD} s ahead or {FLOWER_BEHIND} s behind"
        return fault("clock", says, "set the clocks (`timedatectl set-ntp true`)", values)
    return ok("clock", says, values)


def judge_node_key(task: int, path: Path, is_announced: bool | None) -> Findings:
    """A hospital's node key for a task. `is_announced`: the chain has this key; None if the hospital has not joined."""
    values = {"task": task, "path": str(path)}
    if is_announced is None:
        says = f"task {task} is approved here, but this account has not joined it"
        return warning("node-key", says, "join it, or leave it (consilium hospital leave)", values)
    if not is_announced:
        says = f"{path} is not the node key that was announced for task {task}: its SuperLink refuses it"
        return fault("node-key", says, "restore that key: a hospital keeps its key until the task ends", values)
    return ok("node-key", f"the node key is the one announced for task {task}", values)


def judge_public(
    what: str, url: str, status: int | None, right: Sequence[int], exposed: Sequence[str] = ()
) -> Findings:
    """A role's public address. `right`: the statuses with which the role answers. `exposed`: its private paths that
    others reach.
    """
    values = {"url": url, "status": status}
    if status in right:
        found = ok("public", f"{what} answers at {url}", values)
    elif status is not None and status >= 500:
        says = f"{url} answers {status}: {what} does not run behind its proxy"
        found = warning("public", says, "start it, and check that the proxy has its port", values)
    else:
        says = f"{url} answers {status or 'nothing'}, and {what} would answer {right[0]}"
        found = fault("public", says, "check the name, the proxy and the firewall before it", values)
    if exposed:
        says = f"everybody can read {', '.join(exposed)} of {what} at {url}"
        found += warning("public", says, "block these paths in the proxy (deploy/proxy)", values)
    return found


def judge_link(what: str, url: str, has_password: bool = False) -> Findings:
    """A warning for a URL of another machine without TLS. `url` may hold secrets: they are not shown."""
    parts = urlsplit(url)
    host, scheme = parts.hostname or "", parts.scheme.partition("+")[0]
    is_plain = scheme in ("http", "redis") or (scheme.startswith("postgres") and "sslmode" not in parts.query)
    if not is_plain or not host or _is_near(host):
        return []
    says = f"the link to {what} at {host} has no TLS ({scheme}://)" + (", and carries a password" * has_password)
    secured = {"redis": "rediss://", "http": "https://"}.get(scheme, "?sslmode=verify-full")
    return warning("links", says, f"write {secured} in its URL", {"host": host, "scheme": scheme})


def _is_near(host: str) -> bool:
    """True for this machine, a neighbour container by its bare name, or an address that no other network reaches."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".internal"))
    return address.is_loopback or address.is_private or address.is_link_local
