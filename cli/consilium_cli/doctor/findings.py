"""What observed facts mean for whoever runs a role: one finding or more of each fact, with the values it rests on and,
where something is wrong, what to do. Pure: the same facts, the same findings.
"""

from __future__ import annotations

import ipaddress
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from consilium_chain.keystore import exposing
from consilium_core.connectivity import FLOWER_AHEAD, FLOWER_BEHIND

MIB = 1 << 20
LOCAL_CHAINS = (31_337, 1_337)  # whose clocks tests and demos move
# Seconds that this machine's clock may be behind the chain's latest block: blocks are not made ahead of their time.
BEHIND, FAR_BEHIND = 3, 60
# And before it: so many of its blocks, for one may be on its way and some proposers miss theirs.
BLOCKS_AHEAD, FAR_AHEAD = 5, 900
LEAST_AHEAD = 30
SOON = 20  # days: what renews certificates does so thirty days before their end
LITTLE_DISK, NO_DISK = 2_048 * MIB, 256 * MIB


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """`values` go into JSON; `remedy` is there where `level` is not OK."""

    check: str
    level: Level
    says: str
    remedy: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


Findings = list[Finding]


@dataclass(frozen=True)
class Versions:
    """Of Python and of packages: what is installed, by name, and what this version of Consilium is tested with."""

    python: str
    consilium: str
    installed: Mapping[str, str | None]
    pinned: Mapping[str, str]


def of_versions(seen: Versions) -> Findings:
    found = [
        Finding(
            "versions", Level.FAULT, f"{name} is {seen.installed[name] or 'not installed'}, and {wanted} is needed",
            "install it as consilium asks for it: pip install 'consilium[client,server]' into this environment",
            {"package": name, "found": seen.installed[name], "needed": wanted},
        )
        for name, wanted in seen.pinned.items() if (seen.installed[name] or "").partition("+")[0] != wanted
    ]  # fmt: skip
    own = {"python": seen.python, "consilium": seen.consilium, **seen.installed}
    said = ", ".join(f"{name} {version}" for name, version in own.items())
    return found or [Finding("versions", Level.OK, said, values=own)]


@dataclass(frozen=True)
class Machine:
    """Bytes; `needed` is what a role of this kind takes, by measurement."""

    folder: Path
    disk_free: int
    disk_total: int
    memory_available: int
    memory_needed: int


def of_machine(seen: Machine) -> Findings:
    free, values = seen.disk_free, {"free": seen.disk_free, "total": seen.disk_total}
    said = f"{free // MIB:,} MiB are free where {seen.folder} is"
    room = "make room: what is to be sent is put on disk before it is"
    if free < NO_DISK:
        disk = Finding("disk", Level.FAULT, said, room, values)
    elif free < LITTLE_DISK:
        disk = Finding("disk", Level.WARNING, said, room, values)
    else:
        disk = Finding("disk", Level.OK, said, values=values)
    available, needed = seen.memory_available // MIB, seen.memory_needed // MIB
    values = {"available": seen.memory_available, "needed": seen.memory_needed}
    said = f"{available:,} MiB are available, of which this role takes about {needed:,} (less, if it runs already)"
    if available < needed:
        memory = Finding("memory", Level.WARNING, said, "end something else, or take a larger machine", values)
    else:
        memory = Finding("memory", Level.OK, said, values=values)
    return [disk, memory]


@dataclass(frozen=True)
class File:
    """A file as it is: `mode` None where there is none, `why` in words what is wrong with its content."""

    path: Path
    what: str
    mode: int | None
    why: str | None = None
    is_secret: bool = True


def of_file(seen: File) -> Findings:
    if seen.mode is None:
        return [
            Finding(
                "files", Level.FAULT, f"{seen.what} {seen.path} is not there, or not for this user to see",
                "correct its path in the configuration, or restore it; if systemd hands it over as a credential, it is"
                " there while the service runs",
                {"path": str(seen.path)},
            )
        ]  # fmt: skip
    mode = f"{stat.S_IMODE(seen.mode):04o}"
    values = {"path": str(seen.path), "mode": mode}
    if seen.is_secret and seen.mode & exposing(seen.path):
        way_out = f"chmod {'700' if stat.S_ISDIR(seen.mode) else '600'} {seen.path}"
        return [Finding("files", Level.FAULT, f"{seen.what} {seen.path} is open to others ({mode})", way_out, values)]
    if seen.why is not None:
        return [Finding("files", Level.FAULT, f"{seen.what} {seen.path}: {seen.why}", "restore it from a copy", values)]
    return [Finding("files", Level.OK, f"{seen.what} {seen.path} ({mode})", values=values)]


@dataclass(frozen=True)
class Chain:
    """`now` by this machine, when `block_time` was asked; times in seconds since the epoch."""

    shown_url: str
    chain_id: int
    wanted_id: int
    block: int
    block_time: int
    block_seconds: float
    now: float


def of_chain(seen: Chain) -> Findings:
    where = f"chain {seen.chain_id} at {seen.shown_url}"
    values = {"chain_id": seen.chain_id, "expected": seen.wanted_id, "block": seen.block}
    if seen.chain_id != seen.wanted_id:
        return [
            Finding(
                "chain", Level.FAULT, f"the address book is of chain {seen.wanted_id}, and {where} answers",
                "correct chain_url, or deployment", values,
            )
        ]  # fmt: skip
    return [Finding("chain", Level.OK, f"{where}, block {seen.block:,}", values=values), _clock(seen)]


def _clock(seen: Chain) -> Finding:
    ahead = seen.now - seen.block_time
    compared = f"than the time of the chain's latest block, {seen.block:,} (one comes every {seen.block_seconds:g} s)"
    said = f"this machine's clock is {abs(ahead):.0f} s {'later' if ahead >= 0 else 'earlier'} {compared}"
    values = {"ahead_s": round(ahead, 1), "block": seen.block, "block_seconds": seen.block_seconds}
    if seen.chain_id in LOCAL_CHAINS:
        return Finding("clock", Level.OK, f"{said}; a local chain's clock may be moved", values=values)
    allowed = max(LEAST_AHEAD, BLOCKS_AHEAD * seen.block_seconds)
    if -BEHIND <= ahead <= allowed:
        return Finding("clock", Level.OK, said, values=values)
    level = Level.FAULT if not -FAR_BEHIND <= ahead <= FAR_AHEAD else Level.WARNING
    set_it = "set the clock (`timedatectl set-ntp true`)"
    way_out = f"{set_it}, or take a chain node that is up to date; deadlines go by the chain's" if ahead > 0 else set_it
    return Finding("clock", level, said, way_out, values)


@dataclass(frozen=True)
class Contracts:
    """By contract, whether the compiled code is there; and which of them name others than the address book."""

    codes: Mapping[str, str]
    same: str
    strangers: Sequence[str]


def of_contracts(seen: Contracts) -> Findings:
    others = {name: code for name, code in seen.codes.items() if code != seen.same}
    values = {"codes": dict(seen.codes), "strangers": list(seen.strangers)}
    another = "take the address book of whoever deployed, and the version of consilium that it was deployed with"
    found = [
        Finding("contracts", Level.FAULT, f"at the address of {name} is {code}", another, values)
        for name, code in others.items() if name != "ConsiliumToken"
    ]  # fmt: skip
    if (token := others.get("ConsiliumToken")) is not None:
        told = f"at the address of the token is {token}: a deployment may name any token"
        found.append(Finding("contracts", Level.WARNING, told, "see that it is the token that you mean", values))
    if seen.strangers:
        told = f"{', '.join(seen.strangers)} is not as the address book has it"
        found.append(Finding("contracts", Level.FAULT, told, another, values))
    said = f"{len(seen.codes)} contracts have the compiled code and name one another"
    return found or [Finding("contracts", Level.OK, said, values=values)]


@dataclass(frozen=True)
class Money:
    """`price` in wei for a unit of gas now; `gas` is what the role may need in a day or so."""

    account: str
    wei: int
    price: int
    gas: int
    is_sponsored: bool = False


def of_money(seen: Money) -> Findings:
    reach = seen.wei // max(seen.price, 1)
    held = (
        f"{seen.account} has {seen.wei / 10**18:.6f} ether, enough for {reach:,} gas at {seen.price / 10**9:.3f} gwei"
    )
    values = {"account": seen.account, "wei": str(seen.wei), "gas_price": str(seen.price), "gas_wanted": seen.gas}
    if reach >= seen.gas:
        return [Finding("money", Level.OK, held, values=values)]
    if seen.is_sponsored:
        return [Finding("money", Level.OK, f"{held}; a sponsor pays for it", values=values)]
    level = Level.WARNING if seen.wei else Level.FAULT
    missing = (seen.gas - reach) * seen.price
    return [Finding("money", level, held, f"send {seen.account} {missing / 10**18:.6f} ether or more", values)]


class Held(StrEnum):
    FREE = "free"
    OURS = "ours"
    FOREIGN = "foreign"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True)
class Port:
    """A port of this machine that a role listens on, or will. `beyond`: an address other than loopback at which
    something listens on it, where nothing should.
    """

    what: str
    address: str
    held: Held
    beyond: str | None = None


def of_port(seen: Port) -> Findings:
    values = {"address": seen.address, "held": seen.held}
    if seen.beyond is not None:
        told = f"something listens on {seen.beyond}, and {seen.what} is for loopback alone"
        return [Finding("ports", Level.FAULT, told, "bind it to 127.0.0.1, or close the port to others", values)]
    if seen.held is Held.FOREIGN:
        told = f"{seen.address}, wanted for {seen.what}, is held by something else"
        return [Finding("ports", Level.FAULT, told, "end what listens there, or configure another port", values)]
    if seen.held is Held.FORBIDDEN:
        told = f"{seen.address}, wanted for {seen.what}, is not for this user to listen on"
        return [Finding("ports", Level.FAULT, told, "configure a port above 1,023, and let the proxy have 443", values)]
    said = "is free" if seen.held is Held.FREE else f"answers as {seen.what}"
    return [Finding("ports", Level.OK, f"{seen.address} {said}", values=values)]


@dataclass(frozen=True)
class CertificateFile:
    """A certificate on this machine: times in seconds since the epoch, whether its authority and its key fit, and
    whether the authority's own key is there, which renews it.
    """

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
        told = f"{seen.what} {seen.path} is not of the authority beside it"
        return [Finding("tls", Level.FAULT, told, anew, values)]
    if not seen.fits_key:
        told = f"{seen.what} {seen.path} does not fit the key beside it"
        return [Finding("tls", Level.FAULT, told, renewed, values)]
    return [_validity(f"{seen.what} {seen.path}", seen.starts, seen.ends, seen.now, renewed)]


def _validity(whose: str, starts: float, ends: float, now: float, way_out: str) -> Finding:
    left = _days(ends - now)
    values = {"days_left": left}
    if now > ends:
        return Finding("tls", Level.FAULT, f"{whose} ended {-left:g} days ago", way_out, values)
    if now < starts:
        told = f"{whose} is not valid for another {_days(starts - now):g} days"
        return Finding("tls", Level.FAULT, told, f"set this machine's clock, or {way_out}", values)
    level, way = (Level.WARNING, way_out) if left < SOON else (Level.OK, "")
    return Finding("tls", level, f"{whose} is valid for another {left:g} days", way, values)


def _days(seconds: float) -> float:
    return round(seconds / 86_400, 1)


@dataclass(frozen=True)
class Face:
    """What a server shows to who connects: `why` in words where no TLS comes about, else until when its certificate
    is valid.
    """

    what: str
    address: str
    why: str | None = None
    tls: str = ""
    ends: float = 0.0
    now: float = 0.0


def of_face(seen: Face) -> Findings:
    who, values = f"{seen.what} {seen.address}", {"address": seen.address, "tls": seen.tls}
    if seen.why is not None:
        told, _, way_out = seen.why.partition(": ")
        return [Finding("tls", Level.FAULT, f"{who}: {told}", way_out, values)]
    found = _validity(f"the certificate of {who}", 0.0, seen.ends, seen.now, "have it renewed, and the proxy reloaded")
    return [Finding("tls", found.level, f"{found.says}, {seen.tls}", found.remedy, {**values, **found.values})]


@dataclass(frozen=True)
class Answer:
    """What a request from outside came to: HTTP's status, None where there was no answer; `ahead` is by how many
    seconds this machine's clock is later than the answer's Date.
    """

    status: int | None
    ahead: float | None = None


@dataclass(frozen=True)
class SuperLinkFace:
    """A SuperLink as hospitals see it. `control`: by spelling, what asking the Control API came to. `is_own`: whether
    who asks runs it.
    """

    address: str
    fleet: Answer
    control: Mapping[str, int | None]
    is_own: bool


def of_superlink(seen: SuperLinkFace) -> Findings:
    reached = {target: status for target, status in seen.control.items() if _is_reached(status)}
    found = [_fleet(seen)]
    if reached:
        level = Level.FAULT if seen.is_own else Level.WARNING
        told = (
            f"the SuperLink's Control API answers at {seen.address} ({', '.join(reached)}): whoever reaches it starts"
        )
        way_out = (
            "put deploy/proxy before it, and let nothing else reach the SuperLink's port"
            if seen.is_own else "tell who runs the aggregator; this node runs no code that a run brings"
        )  # fmt: skip
        values = {"control": dict(seen.control)}
        found.append(Finding("control", level, f"{told} and stops runs", way_out, values))
    elif seen.fleet.status is not None:
        refused = f"the SuperLink's Control API is refused at {seen.address}, in {len(seen.control)} spellings"
        found.append(Finding("control", Level.OK, refused, values={"control": dict(seen.control)}))
    ahead = seen.fleet.ahead
    if ahead is not None:
        found.append(_flower_clock(seen, ahead))
    return found


def _is_reached(status: int | None) -> bool:
    """No refusal of a proxy's, and no sign that nothing is behind it."""
    return status is not None and status < 500 and status not in (400, 403, 404, 405, 410, 421)


def _fleet(seen: SuperLinkFace) -> Finding:
    status = seen.fleet.status
    values = {"address": seen.address, "status": status}
    if status == 401:  # who has no registered key
        return Finding("superlink", Level.OK, f"{seen.address} answers as a SuperLink", values=values)
    if status is not None and status >= 500:
        told = f"{seen.address} answers {status}: nothing runs behind its proxy"
        start = "start the aggregator" if seen.is_own else "wait, or ask who runs it"
        return Finding("superlink", Level.WARNING, told, start, values)
    told = f"{seen.address} answers {status or 'nothing'} where a SuperLink would ask for a node's key"
    way_out = (
        "let the proxy pass /v1/fleet/ on (deploy/proxy)" if seen.is_own else "check the address that was approved"
    )
    return Finding("superlink", Level.FAULT, told, way_out, values)


def _flower_clock(seen: SuperLinkFace, ahead: float) -> Finding:
    said = (
        f"this machine's clock is {abs(ahead):.0f} s {'later' if ahead >= 0 else 'earlier'} than that of {seen.address}"
    )
    values = {"ahead_s": round(ahead, 1), "address": seen.address}
    if not -FLOWER_BEHIND < ahead < FLOWER_AHEAD:
        told = f"{said}, which refuses nodes {FLOWER_AHEAD} s before and {FLOWER_BEHIND} s behind it"
        return Finding("clock", Level.FAULT, told, "set the clocks (`timedatectl set-ntp true`)", values)
    return Finding("clock", Level.OK, said, values=values)


@dataclass(frozen=True)
class NodeKey:
    """A hospital's node key and the one that it announced when it joined a task; None where it has not joined."""

    task: int
    path: Path
    is_announced: bool | None


def of_node_key(seen: NodeKey) -> Findings:
    values = {"task": seen.task, "path": str(seen.path)}
    if seen.is_announced is None:
        told = f"task {seen.task} is approved here, and this account has not joined it"
        return [Finding("node-key", Level.WARNING, told, "join it, or leave it (consilium hospital leave)", values)]
    if not seen.is_announced:
        told = f"{seen.path} is not the node key that was announced for task {seen.task}: its SuperLink refuses it"
        return [Finding("node-key", Level.FAULT, told, "restore that key: a task's hospitals keep theirs", values)]
    return [Finding("node-key", Level.OK, f"the node key is the one announced for task {seen.task}", values=values)]


@dataclass(frozen=True)
class Public:
    """An address that a role has for everybody. `right`: statuses that say that the role is behind it. `exposed`: paths
    that should not be to be had, and are.
    """

    what: str
    url: str
    status: int | None
    right: Sequence[int]
    exposed: Sequence[str] = ()


def of_public(seen: Public) -> Findings:
    values = {"url": seen.url, "status": seen.status}
    found = []
    if seen.exposed:
        told = f"{', '.join(seen.exposed)} of {seen.what} is for everybody at {seen.url}"
        found.append(Finding("public", Level.WARNING, told, "let the proxy keep it to itself (deploy/proxy)", values))
    if seen.status in seen.right:
        return [Finding("public", Level.OK, f"{seen.what} answers at {seen.url}", values=values), *found]
    if seen.status is not None and seen.status >= 500:
        told = f"{seen.url} answers {seen.status}: {seen.what} does not run behind its proxy"
        return [Finding("public", Level.WARNING, told, "start it, and see that the proxy has its port", values), *found]
    told = f"{seen.url} answers {seen.status or 'nothing'} where {seen.what} should"
    way_out = "check the name, the proxy and the firewall before it"
    return [Finding("public", Level.FAULT, told, way_out, values), *found]


@dataclass(frozen=True)
class Place:
    """A place of the artifact store. `is_needed`: the role cannot work without this very one."""

    shown: str
    why: str | None
    is_needed: bool


def of_places(seen: Sequence[Place]) -> Findings:
    none_answers = all(place.why is not None for place in seen)
    found = []
    for place in seen:
        if place.why is None:
            found.append(Finding("artifacts", Level.OK, f"{place.shown} answers", values={"place": place.shown}))
            continue
        level = Level.FAULT if none_answers or place.is_needed else Level.WARNING
        way_out = "mount it or mend it, or correct `artifacts` in the configuration"
        values = {"place": place.shown, "why": place.why}
        found.append(Finding("artifacts", level, f"{place.shown}: {place.why}", way_out, values))
    return found


@dataclass(frozen=True)
class Database:
    """`found`: the last migration that its tables have had, None where there are none yet. `stranger`: of which other
    contracts they are.
    """

    shown: str
    found: str | None
    newest: str
    is_known: bool
    stranger: str | None = None


def of_database(seen: Database) -> Findings:
    values = {"database": seen.shown, "migration": seen.found, "newest": seen.newest}
    if seen.found is None:
        told = f"{seen.shown} has no tables yet"
        return [Finding("database", Level.WARNING, told, "nothing: the first process to open it makes them", values)]
    if not seen.is_known:
        told = f"{seen.shown} has had migration {seen.found}, of a later version of consilium"
        return [Finding("database", Level.FAULT, told, "run that version, or restore the copy made before it", values)]
    if seen.stranger is not None:
        told = f"{seen.shown} is of other contracts ({seen.stranger})"
        return [Finding("database", Level.FAULT, told, "name another database, or that deployment", values)]
    if seen.found != seen.newest:
        told = f"{seen.shown} is at migration {seen.found}, and this version's last is {seen.newest}"
        way_out = "copy the database, then start any of the server's processes, which brings it up to date"
        return [Finding("database", Level.WARNING, told, way_out, values)]
    return [Finding("database", Level.OK, f"{seen.shown} is at migration {seen.found}", values=values)]


@dataclass(frozen=True)
class Redis:
    shown: str
    policy: str
    limit: int  # bytes; 0 for none
    used: int
    keeps_log: bool  # appendonly
    refuses: str | None = None  # the code with which it refuses to write


_REFUSALS = {
    "MISCONF": "its disk is full or broken: CONFIG SET appendonly no and CONFIG SET save '' have it write without one",
    "OOM": "raise maxmemory, or see who else fills it",
    "READONLY": "name the primary, not a replica",
    "NOPERM": "the ACL's user must be able to write",
}


def of_redis(seen: Redis) -> Findings:
    values = {
        "broker": seen.shown, "maxmemory_policy": seen.policy, "maxmemory": seen.limit, "used_memory": seen.used,
        "appendonly": seen.keeps_log, "refuses": seen.refuses,
    }  # fmt: skip
    limit = f"{seen.limit // MIB:,} MiB" if seen.limit else "no limit"
    kept = "on, which nothing here needs" if seen.keeps_log else "off, which is enough: beat sends again what is lost"
    said = f"{seen.shown} answers; maxmemory-policy {seen.policy}, maxmemory {limit}; appendonly {kept}"
    if seen.refuses is not None:
        way_out = _REFUSALS.get(
            seen.refuses, "see what its log says; until it writes, each worker does its jobs itself"
        )
        return [Finding("redis", Level.FAULT, f"{said}; it refuses to write ({seen.refuses})", way_out, values)]
    if seen.policy != "noeviction":
        way_out = "CONFIG SET maxmemory-policy noeviction: messages that are dropped unsaid are jobs that come late"
        return [Finding("redis", Level.WARNING, said, way_out, values)]
    if seen.limit and seen.used > seen.limit * 9 // 10:
        told = f"{said}; {seen.used // MIB:,} MiB are used"
        return [Finding("redis", Level.WARNING, told, "raise maxmemory, or see who else fills it", values)]
    return [Finding("redis", Level.OK, said, values=values)]


def of_link(what: str, url: str, has_password: bool = False) -> Findings:
    """A URL of something on another machine that is reached without TLS. `url` may hold secrets: they are not shown."""
    parts = urlsplit(url)
    host, scheme = parts.hostname or "", parts.scheme.partition("+")[0]
    is_plain = scheme in ("http", "redis") or (scheme.startswith("postgres") and "sslmode" not in parts.query)
    if not is_plain or not host or _is_near(host):
        return []
    told = f"{what} at {host} is reached by {scheme}:// without TLS" + (", password included" if has_password else "")
    way_out = {"redis": "rediss://", "http": "https://"}.get(scheme, "?sslmode=verify-full")
    return [Finding("links", Level.WARNING, told, f"say {way_out} in its URL", {"host": host, "scheme": scheme})]


def _is_near(host: str) -> bool:
    """This machine, a neighbour container by its bare name, or an address that no other network reaches."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".internal"))
    return address.is_loopback or address.is_private or address.is_link_local
