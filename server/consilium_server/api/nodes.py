"""Nodes: stake, commission, rewards and slashes. Computed once per head for all nodes from later blocks, and cached."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from consilium_chain.ledger.structs import Role
from sqlalchemy import func, select

from consilium_server.api import schemas
from consilium_server.api.reading import At
from consilium_server.api.schemas import name
from consilium_server.database.tables import Block, Participant, Payment, PoolRow, Position
from consilium_server.index.staking_facts import in_effect
from consilium_server.index.store import latest

Key = tuple[str, int]  # node, role
MICRO, DAY = 10**6, 86_400
FRACTION_BITS = 48
CACHED = 16  # periods and states; readers of the last state may still run when the next is computed
RELOADED = 600.0  # seconds after which all is read anew: an index may be rebuilt under the same blocks
YEAR_DAYS = 365
NEW_DAYS, NEW_ROUNDS = 30, 5  # a younger node, or one of fewer paid rounds, is new: its past says too little


@dataclass(frozen=True)
class AllNodes:
    """`delegators`: number of accounts that have shares of any node."""

    nodes: tuple[schemas.NodeSummary, ...]
    delegators: int


@dataclass
class Gathered:
    """Facts of all nodes up to a block, by node and role. Later blocks are added to them, since a network's stake and
    payments are too many to be read anew for each block.

    `block`, `hash`: the last block in them. `first_stakes`: each pool's first row with stake, and its time.
    `positions`: generation and shares by delegator; `holders`: those of them with shares that are worth something;
    `accounts`: number of nodes that each holds. `paid`, `rewarded`: tasks and rounds with a payment, or a reward.
    `earlier`: by number of days, the last block that is so old, and the pools' rows in force then.
    """

    read_at: float
    block: int = -1
    hash: bytes = b""
    pools: dict[Key, Any] = field(default_factory=dict)
    first_stakes: dict[Key, tuple[Any, int]] = field(default_factory=dict)
    positions: dict[Key, dict[str, tuple[int, int]]] = field(default_factory=lambda: defaultdict(dict))
    holders: dict[Key, dict[str, int]] = field(default_factory=dict)
    accounts: Counter[str] = field(default_factory=Counter)
    paid: dict[Key, set[tuple[int, int | None]]] = field(default_factory=lambda: defaultdict(set))
    rewarded: dict[Key, set[tuple[int, int | None]]] = field(default_factory=lambda: defaultdict(set))
    slashes: Counter[Key] = field(default_factory=Counter)
    tasks: Counter[Key] = field(default_factory=Counter)
    earlier: dict[int, tuple[int, dict[Key, Any]]] = field(default_factory=dict)

    def is_before(self, at: At) -> bool:
        """True if its last block is still in the tables, so that a reorganisation took nothing of it back."""
        return at.db.scalar(select(Block.hash).where(Block.number == self.block)) == self.hash

    def add(self, at: At) -> None:
        """Adds all blocks after the last one."""
        after = self.block
        generations = {key: pool.generation for key, pool in self.pools.items()}
        self._add_pools(at, after)
        changed = {key for key, pool in self.pools.items() if generations.get(key) != pool.generation}
        columns = Position.node, Position.role, Position.delegator, Position.generation, Position.shares
        for node, role, delegator, generation, shares in _later(at, Position, after, *columns):
            self.positions[node, role][delegator] = (generation, shares)
            changed.add((node, role))
        for key in changed & self.pools.keys():
            self._hold(key, self.pools[key].generation)
        payments = Payment.account, Payment.role, Payment.kind, Payment.task, Payment.round
        for account, role, kind, task, round_ in _later(at, Payment, after, *payments):
            if role is None:
                continue
            self.paid[account, role].add((task, round_))
            if kind == "reward":
                self.rewarded[account, role].add((task, round_))
            self.slashes[account, role] += kind == "slash"
        participants = Participant.account, Participant.role
        self.tasks.update((account, role) for account, role in _later(at, Participant, after, *participants))
        latest_block = select(Block.number, Block.hash).order_by(Block.number.desc()).limit(1)
        self.block, self.hash = at.db.execute(latest_block).one_or_none() or (-1, b"")

    def _hold(self, key: Key, now: int) -> None:
        """`now`: the pool's generation; shares of earlier ones are worth nothing."""
        positions, before = self.positions[key], self.holders.get(key, {})
        held = {
            delegator: shares for delegator, (generation, shares) in positions.items() if shares and generation == now
        }
        self.accounts.update(held.keys() - before.keys())
        gone = before.keys() - held.keys()
        self.accounts.subtract(gone)
        for delegator in gone:
            if not self.accounts[delegator]:
                del self.accounts[delegator]
        self.holders[key] = held

    def starts(self, at: At, days: int) -> dict[Key, tuple[Any, int]]:
        """Each pool's row in force so many days ago, with that time; the first row with stake for a younger stake."""
        began = at.head.time - days * DAY
        last = at.db.scalar(select(func.max(Block.number)).where(Block.time <= began))
        if len(self.earlier) == CACHED and days not in self.earlier:
            self.earlier.clear()
        if last is not None:
            after, then = self.earlier.get(days, (-1, {}))
            self.earlier[days] = last, then | _pools(at, PoolRow.block > after, PoolRow.block <= last)
        then = self.earlier[days][1] if days in self.earlier else {}
        return self.first_stakes | {key: (row, began) for key, row in then.items() if row.assets}

    def _add_pools(self, at: At, after: int) -> None:
        self.pools |= _pools(at, PoolRow.block > after)
        new = _pools(at, PoolRow.block > after, first=True)
        new = {key: row for key, row in new.items() if key not in self.first_stakes}
        # Most nodes stake when they register. The rows of the others are searched.
        late = {node for (node, _), row in new.items() if not row.assets}
        staked = _pools(at, PoolRow.node.in_(late), PoolRow.assets > 0, first=True) if late else {}
        firsts = {key: row for key, row in new.items() if row.assets} | {k: staked[k] for k in new if k in staked}
        blocks = select(Block.number, Block.time).where(Block.number.in_({row.block for row in firsts.values()}))
        times = {number: time for number, time in at.db.execute(blocks)}
        self.first_stakes |= {key: (row, times[row.block]) for key, row in firsts.items()}


class NodeTable:
    """Caches the latest states, for the last few periods that clients requested."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gathered: Gathered | None = None
        self._cached: dict[tuple[str, int], AllNodes] = {}

    def at(self, at: At, days: int) -> AllNodes:
        """All nodes at a head, with their yield over so many days."""
        key = at.head.state, days
        with self._lock:  # also while computing, so that a new state is computed once
            if key not in self._cached:
                if len(self._cached) == CACHED:
                    self._cached.clear()
                before, self._gathered = self._gathered, None  # a failure leaves half of a block in it
                gathered = _gather(at, before)
                self._cached[key] = _all_nodes(at, gathered, days)
                self._gathered = gathered
            return self._cached[key]


def _gather(at: At, before: Gathered | None) -> Gathered:
    now = time.monotonic()
    fits = before is not None and now - before.read_at < RELOADED and before.is_before(at)
    gathered = before if before is not None and fits else Gathered(now)
    gathered.add(at)
    return gathered


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


def _all_nodes(at: At, gathered: Gathered, days: int) -> AllNodes:
    starts = gathered.starts(at, days)
    nodes = []
    for key, pool in sorted(gathered.pools.items()):
        start, since = starts.get(key, (pool, at.head.time))
        active = _worth(pool, pool.shares - pool.unbonding_shares)
        staked_at = gathered.first_stakes[key][1] if key in gathered.first_stakes else None
        paid_rounds = len(gathered.rewarded.get(key, ()))
        new = is_new(staked_at, paid_rounds, at.head.time)
        found = realised_yield(start, pool, since, at.head.time)
        held = gathered.holders.get(key, {})
        values = dict(pool._mapping) | in_effect(pool, at.head.time) | {
            "active": active, "free": max(0, active - pool.locked), "slashes": gathered.slashes[key],
            "delegators": len(held), "tasks": gathered.tasks[key], "rounds": len(gathered.paid.get(key, ())),
            "own": _worth(pool, held.get(pool.node, 0)), "staked_at": staked_at, "paid_rounds": paid_rounds,
            "is_new": new, "realised_yield": found, "annual_rate": None if new else annualised(found),
        }  # fmt: skip
        nodes.append(schemas.NodeSummary(**values))
    return AllNodes(tuple(nodes), len(gathered.accounts))


def _later(at: At, fact: Any, after: int, *columns: Any) -> Any:
    """Columns of the rows in blocks after this one, in the chain's order."""
    order = fact.block, fact.log_index, fact.item
    return at.db.execute(select(*columns).where(fact.block > after).order_by(*order))


def _worth(pool: Any, shares: int) -> int:
    return 0 if not pool.shares else shares * pool.assets // pool.shares


def _pools(at: At, *where: Any, first: bool = False) -> dict[tuple[str, int], Any]:
    """Pools, by node and role."""
    found = latest(PoolRow, (PoolRow.node, PoolRow.role), *where, first=first)
    return {(row.node, row.role): row for row in at.db.execute(select(found))}


def totals(rows: tuple[schemas.NodeSummary, ...]) -> dict[str, schemas.Totals]:
    """Sums over all nodes, by role."""
    summed = ("assets", "locked", "rewarded", "burnt", "forfeited")
    sums = {}
    for role in map(name, Role):
        of_role = [row for row in rows if row.role == role]
        amounts = {field: str(sum(int(getattr(row, field)) for row in of_role)) for field in summed}
        sums[role] = schemas.Totals(nodes=len(of_role), **amounts)
    return sums
