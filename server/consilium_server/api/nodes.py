"""Nodes: stake, commission, rewards and slashes. Computed once per head for all nodes, and cached."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

from consilium_chain.ledger.structs import Role
from sqlalchemy import func, select

from consilium_server.api import schemas
from consilium_server.api.reading import At
from consilium_server.api.schemas import name
from consilium_server.database.tables import Block, Participant, Payment, PoolRow, Position
from consilium_server.index.staking_facts import in_effect
from consilium_server.index.store import latest

MICRO, DAY = 10**6, 86_400
FRACTION_BITS = 48
PERIODS = 8  # cached at once
YEAR_DAYS = 365
NEW_DAYS, NEW_ROUNDS = 30, 5  # a younger node, or one of fewer paid rounds, is new: its past says too little


@dataclass(frozen=True)
class AllNodes:
    """`delegators`: number of accounts that have shares of any node."""

    nodes: tuple[schemas.NodeSummary, ...]
    delegators: int


class NodeTable:
    """Caches the latest state, for the last few periods that clients requested."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = ""
        self._cached: dict[int, AllNodes] = {}

    def at(self, at: At, days: int) -> AllNodes:
        """All nodes at a head, with their yield over so many days."""
        with self._lock:  # also while computing, so that a new state is computed once
            if self._state != at.head.state:
                self._state, self._cached = at.head.state, {}
            if days not in self._cached:
                if len(self._cached) == PERIODS:
                    self._cached.clear()
                self._cached[days] = _all_nodes(at, days)
            return self._cached[days]


def realised_yield(start: Any, end: Any, since: int, until: int) -> schemas.Yield:
    """Yield between two times (see `schemas.Yield`). `start` and `end`: the pool's rows in force at these times."""
    unit = start.assets * (1 << FRACTION_BITS)  # a share's worth at the start, times shares, 48 bits fraction
    if not start.shares or not start.assets:
        return schemas.Yield(since=since, until=until, earned=0, lost=0, net=0)
    earned = (end.index_x48 - start.index_x48) * start.shares * MICRO // unit
    is_wiped = end.generation != start.generation or not end.shares
    left = 0 if is_wiped else end.assets * start.shares * MICRO // (end.shares * start.assets)
    lost = MICRO if end.generation != start.generation else 0 if not end.shares else max(0, MICRO - left)
    return schemas.Yield(since=since, until=until, earned=earned, lost=lost, net=earned - lost)


def annualised(found: schemas.Yield) -> int | None:
    """A yield as a simple rate of 365 days, in millionths, rounded down. None for less than a day."""
    seconds = found.until - found.since
    return None if seconds < DAY else found.net * YEAR_DAYS * DAY // seconds


def is_new(staked_at: int | None, paid_rounds: int, now: int) -> bool:
    """True for a node whose first stake is younger than 30 days, or that was paid in fewer than 5 rounds."""
    return staked_at is None or now - staked_at < NEW_DAYS * DAY or paid_rounds < NEW_ROUNDS


def _all_nodes(at: At, days: int) -> AllNodes:
    ends = _pools(at)
    firsts = _first_stakes(at)
    starts = _starts(at, at.head.time - days * DAY, firsts)
    positions = latest(Position, (Position.delegator, Position.node, Position.role))
    generations = {key: row.generation for key, row in ends.items()}
    delegators: Counter[tuple[str, int]] = Counter()
    accounts: set[str] = set()
    own: dict[tuple[str, int], int] = {}
    for row in at.db.execute(select(positions).where(positions.c.shares > 0)):
        if generations.get((row.node, row.role)) == row.generation:
            delegators[row.node, row.role] += 1
            accounts.add(row.delegator)
            if row.delegator == row.node:
                own[row.node, row.role] = row.shares
    paid = (Payment.account, Payment.role)
    tasks = _counts(at, select(Participant.account, Participant.role))
    rounds = _counts(at, select(*paid, Payment.task, Payment.round).where(Payment.role.is_not(None)).distinct())
    slashed = _counts(at, select(*paid).where(Payment.role.is_not(None), Payment.kind == "slash"))
    rewarded = select(*paid, Payment.task, Payment.round).where(Payment.role.is_not(None), Payment.kind == "reward")
    paid_rounds = _counts(at, rewarded.distinct())
    nodes = []
    for key, pool in sorted(ends.items()):
        start, since = starts.get(key, (pool, at.head.time))
        active = _worth(pool, pool.shares - pool.unbonding_shares)
        staked_at = firsts[key][1] if key in firsts else None
        new = is_new(staked_at, paid_rounds[key], at.head.time)
        found = realised_yield(start, pool, since, at.head.time)
        values = dict(pool._mapping) | in_effect(pool, at.head.time) | {
            "active": active, "free": max(0, active - pool.locked), "slashes": slashed[key],
            "delegators": delegators[key], "tasks": tasks[key], "rounds": rounds[key],
            "own": _worth(pool, own.get(key, 0)), "staked_at": staked_at, "paid_rounds": paid_rounds[key],
            "is_new": new, "realised_yield": found, "annual_rate": None if new else annualised(found),
        }  # fmt: skip
        nodes.append(schemas.NodeSummary(**values))
    return AllNodes(tuple(nodes), len(accounts))


def _worth(pool: Any, shares: int) -> int:
    return 0 if not pool.shares else shares * pool.assets // pool.shares


def _pools(at: At, *where: Any, first: bool = False) -> dict[tuple[str, int], Any]:
    """Pools, by node and role."""
    found = latest(PoolRow, (PoolRow.node, PoolRow.role), *where, first=first)
    return {(row.node, row.role): row for row in at.db.execute(select(found))}


def _first_stakes(at: At) -> dict[tuple[str, int], tuple[Any, int]]:
    """Each pool's first row with stake, and the time of that row, by node and role."""
    firsts = _pools(at, first=True)
    # Most nodes stake when they register. The rows of the others are searched.
    late = {node for (node, _), row in firsts.items() if not row.assets}
    staked = _pools(at, PoolRow.node.in_(late), PoolRow.assets > 0, first=True) if late else {}
    firsts = {key: row for key, row in firsts.items() if row.assets} | staked
    blocks = select(Block.number, Block.time).where(Block.number.in_({row.block for row in firsts.values()}))
    times = {number: time for number, time in at.db.execute(blocks)}
    return {key: (row, times[row.block]) for key, row in firsts.items()}


def _starts(
    at: At, began: int, firsts: dict[tuple[str, int], tuple[Any, int]]
) -> dict[tuple[str, int], tuple[Any, int]]:
    """Each pool's row in force at a time, with that time; the first row with stake for a pool that had none then."""
    last = at.db.scalar(select(func.max(Block.number)).where(Block.time <= began))
    then = {} if last is None else _pools(at, PoolRow.block <= last)
    return firsts | {key: (row, began) for key, row in then.items() if row.assets}


def _counts(at: At, rows: Any) -> Counter[tuple[str, int]]:
    """Number of rows of each account in each role."""
    found = rows.subquery()
    query = select(found.c.account, found.c.role, func.count()).group_by(found.c.account, found.c.role)
    return Counter({(account, role): count for account, role, count in at.db.execute(query)})


def totals(rows: tuple[schemas.NodeSummary, ...]) -> dict[str, schemas.Totals]:
    """Sums over all nodes, by role."""
    summed = ("assets", "locked", "rewarded", "burnt", "forfeited")
    sums = {}
    for role in map(name, Role):
        of_role = [row for row in rows if row.role == role]
        amounts = {field: str(sum(int(getattr(row, field)) for row in of_role)) for field in summed}
        sums[role] = schemas.Totals(nodes=len(of_role), **amounts)
    return sums
