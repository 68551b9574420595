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
from consilium_server.index.store import latest

MICRO, DAY = 10**6, 86_400
FRACTION_BITS = 48
PERIODS = 8  # cached at once
HISTORY = 100  # slashes and tasks shown with a node


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


def _all_nodes(at: At, days: int) -> AllNodes:
    ends = _pools(at)
    starts = _starts(at, at.head.time - days * DAY)
    positions = latest(Position, (Position.delegator, Position.node, Position.role))
    generations = {key: row.generation for key, row in ends.items()}
    delegators: Counter[tuple[str, int]] = Counter()
    accounts: set[str] = set()
    for row in at.db.execute(select(positions).where(positions.c.shares > 0)):
        if generations.get((row.node, row.role)) == row.generation:
            delegators[row.node, row.role] += 1
            accounts.add(row.delegator)
    paid = (Payment.account, Payment.role)
    tasks = _counts(at, select(Participant.account, Participant.role))
    rounds = _counts(at, select(*paid, Payment.task, Payment.round).where(Payment.role.is_not(None)).distinct())
    slashed = _counts(at, select(*paid).where(Payment.role.is_not(None), Payment.kind == "slash"))
    nodes = []
    for key, pool in sorted(ends.items()):
        start, since = starts.get(key, (pool, at.head.time))
        active = _active(pool)
        values = dict(pool._mapping) | {
            "active": active, "free": max(0, active - pool.locked), "slashes": slashed[key],
            "delegators": delegators[key], "tasks": tasks[key], "rounds": rounds[key],
            "realised_yield": realised_yield(start, pool, since, at.head.time),
        }  # fmt: skip
        if pool.next_commission_at is not None and pool.next_commission_at <= at.head.time:
            values |= {"commission_bps": pool.next_commission_bps}
            values |= {"next_commission_bps": None, "next_commission_at": None}
        nodes.append(schemas.NodeSummary(**values))
    return AllNodes(tuple(nodes), len(accounts))


def _active(pool: Any) -> int:
    return 0 if not pool.shares else (pool.shares - pool.unbonding_shares) * pool.assets // pool.shares


def _pools(at: At, *where: Any, first: bool = False) -> dict[tuple[str, int], Any]:
    """Pools, by node and role."""
    found = latest(PoolRow, (PoolRow.node, PoolRow.role), *where, first=first)
    return {(row.node, row.role): row for row in at.db.execute(select(found))}


def _starts(at: At, began: int) -> dict[tuple[str, int], tuple[Any, int]]:
    """Each staked pool's row in force at a time, with that time, by node and role.

    For a pool whose first stake came later: its first row with stake, and the time of that row.
    """
    last = at.db.scalar(select(func.max(Block.number)).where(Block.time <= began))
    then = {} if last is None else _pools(at, PoolRow.block <= last)
    found = {key: (row, began) for key, row in then.items() if row.assets}
    firsts = {key: row for key, row in _pools(at, first=True).items() if key not in found}
    # Most nodes stake when they register. The rows of the others are searched.
    late = {node for (node, _), row in firsts.items() if not row.assets}
    staked = _pools(at, PoolRow.node.in_(late), PoolRow.assets > 0, first=True) if late else {}
    firsts |= {key: row for key, row in staked.items() if key not in found}
    blocks = select(Block.number, Block.time).where(Block.number.in_({row.block for row in firsts.values()}))
    times = {number: time for number, time in at.db.execute(blocks)}
    return found | {key: (row, times[row.block]) for key, row in firsts.items()}


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
