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
from consilium_core.units import ether

MIB = 1 << 20
LOCAL_CHAINS = (31_337, 1_337)  # tests and demos move their clocks
# Seconds that this machine's clock may be behind the chain's latest block: no block is made ahead of its time.
BEHIND, FAR_BEHIND = 3, 60
# Blocks that it may be ahead, since one may be on its way and some proposers miss theirs; and seconds.
BLOCKS_AHEAD = 5
LEAST_AHEAD, FAR_AHEAD = 30, 900
LITTLE_DISK, NO_DISK = 2_048 * MIB, 256 * MIB
REDIS_REMEDIES = {
    "MISCONF": "its disk is full or broken: repair it, or let Redis write without it (CONFIG SET appendonly no, CONFIG"
    " SET save '')",
    "OOM": "raise maxmemory, or find the program that fills it",
    "READONLY": "name the primary, not a replica",
    "NOPERM": "give the ACL's user the right to write",
}


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """`values` are for JSON. `remedy`: empty if `level` is OK."""

    check: str
    level: Level
    says: str
    remedy: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


Findings = list[Finding]


def graded(level: Level, check: str, says: str, remedy: str, values: Mapping[str, object]) -> Findings:
    """One finding. It has the remedy only if something is wrong."""
    return [Finding(check, level, says, "" if level is Level.OK else remedy, values)]


def ok(check: str, says: str, values: Mapping[str, object]) -> Findings:
    return graded(Level.OK, check, says, "", values)


def warning(check: str, says: str, remedy: str, values: Mapping[str, object]) -> Findings:
    return graded(Level.WARNING, check, says, remedy, values)


def fault(check: str, says: str, remedy: str, values: Mapping[str, object]) -> Findings:
    return graded(Level.FAULT, check, says, remedy, values)


def judge_versions(
    python: str, consilium: str, installed: Mapping[str, str | None], pinned: Mapping[str, str]
) -> Findings:
    """`installed`, `pinned`: versions by package. This Consilium is tested with the pinned ones."""
    remedy = "install the tested versions into this environment: pip install 'consilium[client,server]'"
    found: Findings = []
    for name, needed in pinned.items():
        if (installed[name] or "").partition("+")[0] != needed:
            values = {"package": name, "found": installed[name], "needed": needed}
            says = f"{name} is {installed[name] or 'not installed'}, but {needed} is needed"
            found += fault("versions", says, remedy, values)
    own = {"python": python, "consilium": consilium, **installed}
    return found or ok("versions", ", ".join(f"{name} {version}" for name, version in own.items()), own)


def judge_machine(folder: Path, disk_free: int, disk_total: int, memory_available: int, memory_needed: int) -> Findings:
    """Sizes in bytes. `memory_needed`: measured for a role of this kind."""
    values = {"free": disk_free, "total": disk_total}
    says = f"{disk_free // MIB:,} MiB are free on the disk of {folder}"
    level = Level.FAULT if disk_free < NO_DISK else Level.WARNING if disk_free < LITTLE_DISK else Level.OK
    disk = graded(level, "disk", says, "free some space: a message is written to disk before it is sent", values)
    values = {"available": memory_available, "needed": memory_needed}
    says = (
        f"{memory_available // MIB:,} MiB are available; this role needs about {memory_needed // MIB:,} (less if it"
        " runs already)"
    )
    level = Level.WARNING if memory_available // MIB < memory_needed // MIB else Level.OK
    return disk + graded(level, "memory", says, "end other programs, or use a machine with more memory", values)


def judge_file(path: Path, what: str, mode: int | None, why: str | None = None, is_secret: bool = True) -> Findings:
    """`mode`: None for a missing file. `why`: the fault of its content, in words."""
    if mode is None:
        remedy = (
            "correct its path in the configuration, or restore it. A systemd credential exists only while the service"
            " runs"
        )
        return fault("files", f"{what} {path} is missing, or hidden from this user", remedy, {"path": str(path)})
    shown = f"{stat.S_IMODE(mode):04o}"
    values = {"path": str(path), "mode": shown}
    if is_secret and mode & exposing(path):
        remedy = f"chmod {'700' if stat.S_ISDIR(mode) else '600'} {path}"
        return fault("files", f"{what} {path} is open to others ({shown})", remedy, values)
    if why is not None:
        return fault("files", f"{what} {path}: {why}", "restore it from a copy", values)
    return ok("files", f"{what} {path} ({shown})", values)


def judge_chain(
    shown_url: str, chain_id: int, wanted_id: int, block: int, block_time: int, block_seconds: float, now: float
) -> Findings:
    """`now`: this machine's time when it asked for `block_time`. Times in seconds since the epoch."""
    values = {"chain_id": chain_id, "expected": wanted_id, "block": block}
    if chain_id != wanted_id:
        says = f"the address book is for chain {wanted_id}, but the node at {shown_url} is on chain {chain_id}"
        return fault("chain", says, "correct chain_url or deployment in the configuration", values)
    found = ok("chain", f"chain {chain_id} at {shown_url}, block {block:,}", values)
    ahead = now - block_time
    says = (
        f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead >= 0 else 'behind'} the chain's latest"
        f" block, {block:,} (the chain makes one every {block_seconds:g} s)"
    )
    times = {"ahead_s": round(ahead, 1), "block": block, "block_seconds": block_seconds}
    if chain_id in LOCAL_CHAINS:
        return found + ok("clock", f"{says}; the clock of a local chain may be moved", times)
    allowed = max(LEAST_AHEAD, BLOCKS_AHEAD * block_seconds)
    level = (
        Level.OK if -BEHIND <= ahead <= allowed
        else Level.WARNING if -FAR_BEHIND <= ahead <= FAR_AHEAD
        else Level.FAULT
    )  # fmt: skip
    remedy = "set the clock (`timedatectl set-ntp true`)"
    if ahead > 0:
        remedy += ", or use a chain node that is up to date: deadlines follow the chain's clock"
    return found + graded(level, "clock", says, remedy, times)


def judge_contracts(codes: Mapping[str, str], same: str, strangers: Sequence[str]) -> Findings:
    """`codes`: by contract, its code compared with the compiled one; `same` if they agree. `strangers`: those that name
    other contracts.
    """
    values = {"codes": dict(codes), "strangers": list(strangers)}
    remedy = "use the deployer's address book, and the version of consilium that deployed these contracts"
    found: Findings = []
    for name, code in codes.items():
        if code == same:
            continue
        if name == "ConsiliumToken":
            says = f"the token's address holds {code}: a deployment may name any token"
            found += warning("contracts", says, "check that this is the token that you mean", values)
        else:
            found += fault("contracts", f"the address of {name} holds {code}", remedy, values)
    if strangers:
        found += fault("contracts", f"the address book has another address for {', '.join(strangers)}", remedy, values)
    says = f"{len(codes)} contracts have the compiled code and name one another"
    return found or ok("contracts", says, values)


def judge_money(account: str, wei: int, price: int, gas: int, is_sponsored: bool = False) -> Findings:
    """`price`: in wei for a unit of gas now. `gas`: units that the role may need in a day or so."""
    enough_for = wei // max(price, 1)
    says = f"{account} has {wei / 10**18:.6f} ether, enough for {enough_for:,} gas at {price / 10**9:.3f} gwei"
    values = {"account": account, "wei": str(wei), "gas_price": str(price), "gas_wanted": gas}
    if enough_for >= gas:
        return ok("money", says, values)
    if is_sponsored:
        return ok("money", f"{says}; a sponsor pays its gas", values)
    missing = (gas - enough_for) * price
    remedy = f"send {account} {ether(missing)} ether or more"
    return graded(Level.WARNING if wei else Level.FAULT, "money", says, remedy, values)


def judge_store(shown: str, why: str | None, is_needed: bool = True) -> Findings:
    """A back end of the artifact store. `why`: the reason if it cannot be used. `is_needed`: no mirror replaces it."""
    if why is None:
        return ok("artifacts", f"{shown} answers", {"place": shown})
    remedy = "mount or repair it, or correct `artifacts` in the configuration"
    level = Level.FAULT if is_needed else Level.WARNING
    return graded(level, "artifacts", f"{shown}: {why}", remedy, {"place": shown, "why": why})


def judge_database(shown: str, found: str | None, newest: str, is_known: bool, stranger: str | None = None) -> Findings:
    """`found`: its last migration, None without tables. `stranger`: the other contracts that it belongs to."""
    values = {"database": shown, "migration": found, "newest": newest}
    if found is None:
        remedy = "do nothing: the first process that opens it makes them"
        return warning("database", f"{shown} has no tables yet", remedy, values)
    if not is_known:
        says = f"{shown} has migration {found}, from a later version of consilium"
        return fault("database", says, "run that version, or restore the copy made before it", values)
    if stranger is not None:
        says = f"{shown} belongs to other contracts ({stranger})"
        return fault("database", says, "name another database, or that deployment", values)
    if found != newest:
        says = f"{shown} is at migration {found}, but this version needs {newest}"
        remedy = "copy the database, then start any process of the server, which updates it"
        return warning("database", says, remedy, values)
    return ok("database", f"{shown} is at migration {found}", values)


def judge_redis(
    shown: str, policy: str, limit: int, used: int, keeps_log: bool, refuses: str | None = None
) -> Findings:
    """`limit`, `used`: bytes; no limit is 0. `keeps_log`: appendonly. `refuses`: the code with which it refuses to
    write.
    """
    values = {
        "broker": shown, "maxmemory_policy": policy, "maxmemory": limit, "used_memory": used, "appendonly": keeps_log,
        "refuses": refuses,
    }  # fmt: skip
    shown_limit = f"{limit // MIB:,} MiB" if limit else "no limit"
    log = "on, which is not needed here" if keeps_log else "off, which is enough: beat sends a lost job again"
    says = f"{shown} answers; maxmemory-policy {policy}, maxmemory {shown_limit}; appendonly {log}"
    if refuses is not None:
        remedy = REDIS_REMEDIES.get(refuses, "read its log; until it writes, each worker does its jobs itself")
        return fault("redis", f"{says}; it refuses to write ({refuses})", remedy, values)
    if policy != "noeviction":
        remedy = "CONFIG SET maxmemory-policy noeviction: a message that Redis drops is a job that runs late"
        return warning("redis", says, remedy, values)
    if limit and used > limit * 9 // 10:
        return warning("redis", f"{says}; {used // MIB:,} MiB are used", REDIS_REMEDIES["OOM"], values)
    return ok("redis", says, values)
