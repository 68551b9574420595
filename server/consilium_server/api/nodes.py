"""Nodes: stake, commission, rewards and slashes. Computed once per head for all nodes, and cached."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from consilium_chain.ledger.structs import Phase, Role
from sqlalchemy import and_, func, select

from consilium_server.api import schemas
from consilium_server.api.money_reads import slashes
from consilium_server.api.paging import Asked, behind
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At, latest
from consilium_server.api.schemas import name
from consilium_server.api.task_reads import latest_phases
from consilium_server.database.tables import Block, EventRow, Participant, Payment, PoolRow, Position

MICRO, DAY = 10**6, 86_400
FRACTION_BITS = 48
PERIODS = 8  # kept at once
HISTORY = 100  # slashes and tasks shown with a node
SORTS = ("node", "assets", "active", "commission", "rewarded", "burnt", "rounds", "yield")


@dataclass(frozen=True)
class Everything:
    """`delegators`: accounts that have shares of any node."""

    nodes: tuple[schemas.NodeSummary, ...]
    delegators: int


class NodeTable:
    """Caches the latest state, for the last few numbers of days that were asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = ""
        self._kept: dict[int, Everything] = {}

    def at(self, at: At, days: int) -> Everything:
        """All nodes at a head, with their yield over so many days."""
        with self._lock:  # also while computing: of many that ask about a new state, one does
            if self._state != at.head.state:
                self._state, self._kept = at.head.state, {}
            if days not in self._kept:
                if len(self._kept) == PERIODS:
                    self._kept.clear()
                self._kept[days] = _everything(at, days)
            return self._kept[days]


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


def _everything(at: At, days: int) -> Everything:
    ends = _pools(at)
    starts = _starts(at, at.head.time - days * DAY)
    positions = latest(Position, (Position.delegator, Position.node, Position.role))
    generations = {key: row.generation for key, row in ends.items()}
    delegators: Counter[tuple[str, int]] = Counter()
    who: set[str] = set()
    for row in at.db.execute(select(positions).where(positions.c.shares > 0)):
        if generations.get((row.node, row.role)) == row.generation:
            delegators[row.node, row.role] += 1
            who.add(row.delegator)
    paid = (Payment.account, Payment.role)
    tasks = _counts(at, select(Participant.account, Participant.role))
    rounds = _counts(at, select(*paid, Payment.task, Payment.round).where(Payment.role.is_not(None)).distinct())
    slashed = _counts(at, select(*paid).where(Payment.role.is_not(None), Payment.kind == "slash"))
    found = []
    for key, pool in sorted(ends.items()):
        start, since = starts.get(key, (pool, at.head.time))
        active = _active(pool)
        raised = pool.next_commission_at is not None and pool.next_commission_at <= at.head.time
        found.append(
            schemas.NodeSummary(
                node=pool.node, role=name(Role(pool.role)), assets=str(pool.assets), active=str(active),
                locked=str(pool.locked), free=str(max(0, active - pool.locked)), shares=str(pool.shares),
                unbonding_shares=str(pool.unbonding_shares), generation=pool.generation,
                commission_bps=pool.next_commission_bps if raised else pool.commission_bps,
                next_commission_bps=None if raised else pool.next_commission_bps,
                next_commission_at=None if raised else pool.next_commission_at, rewarded=str(pool.rewarded),
                burnt=str(pool.burnt), forfeited=str(pool.forfeited), slashes=slashed[key],
                delegators=delegators[key], tasks=tasks[key], rounds=rounds[key], voter_key=pool.voter_key,
                realised_yield=realised_yield(start, pool, since, at.head.time),
            )
        )  # fmt: skip
    return Everything(tuple(found), len(who))


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
    # Most stake as they register; the others are looked for row by row.
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


def list_nodes(
    every: Sequence[schemas.NodeSummary], role: str | None, account: str | None, sort: str, asked: Asked
) -> schemas.Page[schemas.NodeSummary]:
    """A page of the nodes with this role and account. Raises RequestRefused (CursorInvalid)."""
    rows = [row for row in every if role in (None, row.role) and account in (None, row.node)]
    descending, field = sort.startswith("-"), sort.removeprefix("-")
    rows.sort(key=lambda row: _sort_key(row, field), reverse=descending)
    start = asked.start()
    if start is not None:
        after = (int(start[0]) if field != "node" else start[0], *start[1:])
        rows = [row for row in rows if (_sort_key(row, field) < after if descending else _sort_key(row, field) > after)]
    cut = asked.cut(rows[: asked.limit + 1], lambda row: [str(_sort_key(row, field)[0]), *_sort_key(row, field)[1:]])
    return schemas.Page(items=cut.rows, next=cut.next)


def _sort_key(row: schemas.NodeSummary, field: str) -> tuple[Any, str, str]:
    by: dict[str, Any] = {
        "node": row.node, "assets": int(row.assets), "active": int(row.active), "commission": row.commission_bps,
        "rewarded": int(row.rewarded), "burnt": int(row.burnt), "rounds": row.rounds, "yield": row.realised_yield.net,
    }  # fmt: skip
    return by[field], row.node, row.role


def one_node(at: At, every: Sequence[schemas.NodeSummary], node: str, role: str) -> schemas.Node:
    """A node with its latest slashes and tasks. `every`: all nodes. Raises Problem if there is none."""
    summary = next((row for row in every if (row.node, row.role) == (node, role)), None)
    if summary is None:
        raise Problem("not-found", f"{node} is no {role} in the index: see /v1/nodes for those that are")
    number = schemas.named(Role, role)
    phase = latest_phases()
    tasks = (
        select(Participant, Block.time, phase.c.phase)
        .join(Block, Block.number == Participant.block)
        .outerjoin(phase, phase.c.task == Participant.task)
        .where(Participant.account == node, Participant.role == number)
        .order_by(Participant.block.desc(), Participant.log_index.desc())
        .limit(HISTORY)
    )
    return schemas.Node(
        **summary.model_dump(exclude={"realised_yield"}),
        realised_yield=summary.realised_yield,
        slash_history=slashes(at, node, number, HISTORY),
        task_history=[
            schemas.NodeTask(task=one.task, position=one.position, joined_at=time, phase=name(Phase(at_phase or 0)))
            for one, time, at_phase in at.db.execute(tasks)
        ],
    )


def list_pool_changes(at: At, node: str, role: str, asked: Asked) -> schemas.Page[schemas.PoolChange]:
    """Changes of a node's pool, the latest first."""
    columns = (PoolRow.block, PoolRow.log_index, PoolRow.item)
    query = (
        select(PoolRow, Block.time, EventRow.transaction, EventRow.name)
        .join(Block, Block.number == PoolRow.block)
        .outerjoin(EventRow, and_(EventRow.block == PoolRow.block, EventRow.log_index == PoolRow.log_index))
        .where(PoolRow.node == node, PoolRow.role == schemas.named(Role, role))
        .where(*behind(columns, asked.start(), descending=True))
        .order_by(*(column.desc() for column in columns))
        .limit(asked.limit + 1)
    )
    cut = asked.cut(list(at.db.execute(query)), lambda row: [row[0].block, row[0].log_index, row[0].item])
    return schemas.Page(
        items=[
            schemas.PoolChange(
                time=time, block=row.block, log_index=row.log_index,
                transaction=None if transaction is None else schemas.hexed(transaction), event=event,
                assets=str(row.assets), shares=str(row.shares), locked=str(row.locked),
                commission_bps=row.commission_bps, rewarded=str(row.rewarded), burnt=str(row.burnt),
            )
            for row, time, transaction, event in cut.rows
        ],
        next=cut.next,
    )  # fmt: skip


def totals(rows: tuple[schemas.NodeSummary, ...]) -> dict[str, schemas.Totals]:
    """Sums over all nodes, by role."""
    summed = ("assets", "locked", "rewarded", "burnt", "forfeited")
    found = {}
    for role in map(name, Role):
        of_role = [row for row in rows if row.role == role]
        sums = {field: str(sum(int(getattr(row, field)) for row in of_role)) for field in summed}
        found[role] = schemas.Totals(nodes=len(of_role), **sums)
    return found
