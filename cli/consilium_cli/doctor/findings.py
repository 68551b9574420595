"""Findings from facts about a machine, its chain, its stores and its database. Each has the values behind it and, where
something is wrong, a remedy. Pure: the same facts give the same findings.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from consilium_core.private_files import exposing

MIB = 1 << 20
LOCAL_CHAINS = (31_337, 1_337)  # whose clocks tests and demos move
# Seconds that this machine's clock may be behind the chain's latest block: blocks are not made ahead of their time.
BEHIND, FAR_BEHIND = 3, 60
# And before it: so many of its blocks, for one may be on its way and some proposers miss theirs.
BLOCKS_AHEAD, FAR_AHEAD = 5, 900
LEAST_AHEAD = 30
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


def graded(level: Level, check: str, says: str, remedy: str, values: Mapping[str, object]) -> Findings:
    """One finding; without the remedy where nothing is wrong."""
    return [Finding(check, level, says, "" if level is Level.OK else remedy, values)]


def ok(check: str, says: str, values: Mapping[str, object]) -> Findings:
    return graded(Level.OK, check, says, "", values)


def warning(check: str, says: str, remedy: str, values: Mapping[str, object]) -> Findings:
    return graded(Level.WARNING, check, says, remedy, values)


def fault(check: str, says: str, remedy: str, values: Mapping[str, object]) -> Findings:
    return graded(Level.FAULT, check, says, remedy, values)


@dataclass(frozen=True)
class Versions:
    """Installed versions of Python and of packages, by name, and those that this Consilium is tested with."""

    python: str
    consilium: str
    installed: Mapping[str, str | None]
    pinned: Mapping[str, str]


def of_versions(seen: Versions) -> Findings:
    remedy = "install it as consilium asks for it: pip install 'consilium[client,server]' into this environment"
    found: Findings = []
    for name, wanted in seen.pinned.items():
        if (seen.installed[name] or "").partition("+")[0] != wanted:
            values = {"package": name, "found": seen.installed[name], "needed": wanted}
            said = f"{name} is {seen.installed[name] or 'not installed'}, and {wanted} is needed"
            found += fault("versions", said, remedy, values)
    own = {"python": seen.python, "consilium": seen.consilium, **seen.installed}
    said = ", ".join(f"{name} {version}" for name, version in own.items())
    return found or ok("versions", said, own)


@dataclass(frozen=True)
class Machine:
    """Bytes. `memory_needed`: measured for a role of this kind."""

    folder: Path
    disk_free: int
    disk_total: int
    memory_available: int
    memory_needed: int


def of_machine(seen: Machine) -> Findings:
    free, values = seen.disk_free, {"free": seen.disk_free, "total": seen.disk_total}
    said = f"{free // MIB:,} MiB are free where {seen.folder} is"
    level = Level.FAULT if free < NO_DISK else Level.WARNING if free < LITTLE_DISK else Level.OK
    disk = graded(level, "disk", said, "make room: a message is put on disk before it is sent", values)
    available, needed = seen.memory_available // MIB, seen.memory_needed // MIB
    values = {"available": seen.memory_available, "needed": seen.memory_needed}
    said = f"{available:,} MiB are available, of which this role takes about {needed:,} (less, if it runs already)"
    level = Level.WARNING if available < needed else Level.OK
    return disk + graded(level, "memory", said, "end something else, or take a larger machine", values)


@dataclass(frozen=True)
class File:
    """A file. `mode`: None where there is none. `why`: the fault of its content, in words."""

    path: Path
    what: str
    mode: int | None
    why: str | None = None
    is_secret: bool = True


def of_file(seen: File) -> Findings:
    if seen.mode is None:
        remedy = (
            "correct its path in the configuration, or restore it; if systemd hands it over as a credential, it is"
            " there while the service runs"
        )
        said = f"{seen.what} {seen.path} is not there, or not for this user to see"
        return fault("files", said, remedy, {"path": str(seen.path)})
    mode = f"{stat.S_IMODE(seen.mode):04o}"
    values = {"path": str(seen.path), "mode": mode}
    if seen.is_secret and seen.mode & exposing(seen.path):
        way_out = f"chmod {'700' if stat.S_ISDIR(seen.mode) else '600'} {seen.path}"
        return fault("files", f"{seen.what} {seen.path} is open to others ({mode})", way_out, values)
    if seen.why is not None:
        return fault("files", f"{seen.what} {seen.path}: {seen.why}", "restore it from a copy", values)
    return ok("files", f"{seen.what} {seen.path} ({mode})", values)


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
        said = f"the address book is of chain {seen.wanted_id}, and {where} answers"
        return fault("chain", said, "correct chain_url, or deployment", values)
    return ok("chain", f"{where}, block {seen.block:,}", values) + _clock(seen)


def _clock(seen: Chain) -> Findings:
    ahead = seen.now - seen.block_time
    compared = f"than the time of the chain's latest block, {seen.block:,} (one comes every {seen.block_seconds:g} s)"
    said = f"this machine's clock is {abs(ahead):.0f} s {'later' if ahead >= 0 else 'earlier'} {compared}"
    values = {"ahead_s": round(ahead, 1), "block": seen.block, "block_seconds": seen.block_seconds}
    if seen.chain_id in LOCAL_CHAINS:
        return ok("clock", f"{said}; a local chain's clock may be moved", values)
    allowed = max(LEAST_AHEAD, BLOCKS_AHEAD * seen.block_seconds)
    if -BEHIND <= ahead <= allowed:
        return ok("clock", said, values)
    level = Level.FAULT if not -FAR_BEHIND <= ahead <= FAR_AHEAD else Level.WARNING
    set_it = "set the clock (`timedatectl set-ntp true`)"
    way_out = f"{set_it}, or take a chain node that is up to date; deadlines go by the chain's" if ahead > 0 else set_it
    return graded(level, "clock", said, way_out, values)


@dataclass(frozen=True)
class Contracts:
    """`codes`: by contract, its code compared with the compiled one. `strangers`: those that name other contracts."""

    codes: Mapping[str, str]
    same: str
    strangers: Sequence[str]


def of_contracts(seen: Contracts) -> Findings:
    others = {name: code for name, code in seen.codes.items() if code != seen.same}
    values = {"codes": dict(seen.codes), "strangers": list(seen.strangers)}
    another = "take the deployer's address book, and the version of consilium that it was deployed with"
    found: Findings = []
    for name, code in others.items():
        if name == "ConsiliumToken":
            told = f"at the address of the token is {code}: a deployment may name any token"
            found += warning("contracts", told, "see that it is the token that you mean", values)
        else:
            found += fault("contracts", f"at the address of {name} is {code}", another, values)
    if seen.strangers:
        found += fault("contracts", f"{', '.join(seen.strangers)} is not as the address book has it", another, values)
    said = f"{len(seen.codes)} contracts have the compiled code and name one another"
    return found or ok("contracts", said, values)


@dataclass(frozen=True)
class Money:
    """`price`: in wei for a unit of gas now. `gas`: units that the role may need in a day or so."""

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
        return ok("money", held, values)
    if seen.is_sponsored:
        return ok("money", f"{held}; a sponsor pays for it", values)
    level = Level.WARNING if seen.wei else Level.FAULT
    missing = (seen.gas - reach) * seen.price
    return graded(level, "money", held, f"send {seen.account} {missing / 10**18:.6f} ether or more", values)


@dataclass(frozen=True)
class Place:
    """A place of the artifact store. `is_needed`: the role cannot work without this very one."""

    shown: str
    why: str | None
    is_needed: bool


def of_places(seen: Sequence[Place]) -> Findings:
    none_answers = all(place.why is not None for place in seen)
    found: Findings = []
    for place in seen:
        if place.why is None:
            found += ok("artifacts", f"{place.shown} answers", {"place": place.shown})
            continue
        level = Level.FAULT if none_answers or place.is_needed else Level.WARNING
        way_out = "mount it or mend it, or correct `artifacts` in the configuration"
        values = {"place": place.shown, "why": place.why}
        found += graded(level, "artifacts", f"{place.shown}: {place.why}", way_out, values)
    return found


@dataclass(frozen=True)
class Database:
    """`found`: the last migration of its tables, None without tables. `stranger`: the other contracts that it is of."""

    shown: str
    found: str | None
    newest: str
    is_known: bool
    stranger: str | None = None


def of_database(seen: Database) -> Findings:
    values = {"database": seen.shown, "migration": seen.found, "newest": seen.newest}
    if seen.found is None:
        told = f"{seen.shown} has no tables yet"
        return warning("database", told, "nothing: the first process to open it makes them", values)
    if not seen.is_known:
        told = f"{seen.shown} has had migration {seen.found}, of a later version of consilium"
        return fault("database", told, "run that version, or restore the copy made before it", values)
    if seen.stranger is not None:
        told = f"{seen.shown} is of other contracts ({seen.stranger})"
        return fault("database", told, "name another database, or that deployment", values)
    if seen.found != seen.newest:
        told = f"{seen.shown} is at migration {seen.found}, and this version's last is {seen.newest}"
        way_out = "copy the database, then start any of the server's processes, which brings it up to date"
        return warning("database", told, way_out, values)
    return ok("database", f"{seen.shown} is at migration {seen.found}", values)


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
    "OOM": "raise maxmemory, or see which other program fills it",
    "READONLY": "name the primary, not a replica",
    "NOPERM": "the ACL's user must be able to write",
}


def of_redis(seen: Redis) -> Findings:
    values = {
        "broker": seen.shown, "maxmemory_policy": seen.policy, "maxmemory": seen.limit, "used_memory": seen.used,
        "appendonly": seen.keeps_log, "refuses": seen.refuses,
    }  # fmt: skip
    limit = f"{seen.limit // MIB:,} MiB" if seen.limit else "no limit"
    kept = "on, which is not needed here" if seen.keeps_log else "off, which is enough: beat sends a lost job again"
    said = f"{seen.shown} answers; maxmemory-policy {seen.policy}, maxmemory {limit}; appendonly {kept}"
    if seen.refuses is not None:
        way_out = _REFUSALS.get(seen.refuses, "read its log; until it writes, each worker does its jobs itself")
        return fault("redis", f"{said}; it refuses to write ({seen.refuses})", way_out, values)
    if seen.policy != "noeviction":
        way_out = "CONFIG SET maxmemory-policy noeviction: messages that are dropped unsaid are jobs that come late"
        return warning("redis", said, way_out, values)
    if seen.limit and seen.used > seen.limit * 9 // 10:
        told = f"{said}; {seen.used // MIB:,} MiB are used"
        return warning("redis", told, "raise maxmemory, or see which other program fills it", values)
    return ok("redis", said, values)
