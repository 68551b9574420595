"""Reads nodes: lists, one node with its latest slashes and tasks, and changes of its pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from consilium_chain.ledger.structs import Phase, Role
from fastapi import APIRouter, Query
from sqlalchemy import func, select

from consilium_server.api import record_schemas, schemas
from consilium_server.api.context import Service
from consilium_server.api.money_reads import slashes
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At, position_of, with_log
from consilium_server.api.record_reads import record_of
from consilium_server.api.routing import LIST, ONE, Paged, Shared, read_route
from consilium_server.api.schemas import GivenAccount, RoleName
from consilium_server.api.standing_reads import ranks_of
from consilium_server.api.task_reads import latest_phases
from consilium_server.database.tables import Block, EventRow, Participant, Payment, PoolRow

HISTORY = 100  # slashes and tasks shown with a node
QUARTER = 90  # days
Days = Annotated[int, Query(ge=1, le=365, description="days over which the yield is realised")]

nodes = APIRouter(prefix="/v1", tags=["nodes"])


@read_route(nodes, "/nodes", "listNodes", "Nodes, by stake", LIST)
def list_nodes(
    at: At,
    service: Shared,
    request: Paged,
    role: RoleName | None = None,
    account: GivenAccount | None = None,
    days: Days = 30,
    sort: Literal[
        "node", "assets", "active", "commission", "rewarded", "burnt", "rounds", "yield",
        "-node", "-assets", "-active", "-commission", "-rewarded", "-burnt", "-rounds", "-yield",
    ] = "-assets",
) -> schemas.Page[schemas.NodeSummary]:  # fmt: skip
    """A page of the nodes with this role and account. Raises RequestRefused (CursorInvalid)."""
    rows = [row for row in service.nodes.at(at, days).nodes if role in (None, row.role) and account in (None, row.node)]
    descending, field = sort.startswith("-"), sort.removeprefix("-")
    key = partial(_sort_key, field=field, descending=descending)
    rows.sort(key=key, reverse=descending)
    start = request.start()
    if start is not None:
        after = tuple(start)
        rows = [row for row in rows if (key(row) < after if descending else key(row) > after)]
    cut = request.cut(rows[: request.limit + 1], key)
    return schemas.Page(items=cut.rows, next=cut.next)


def _sort_key(row: schemas.NodeSummary, field: str, descending: bool) -> tuple[bool, int, str, str]:
    """New nodes have no rank by yield: they come last, in either direction."""
    unranked = field == "yield" and row.is_new
    by = {
        "node": 0, "assets": int(row.assets), "active": int(row.active), "commission": row.commission_bps,
        "rewarded": int(row.rewarded), "burnt": int(row.burnt), "rounds": row.rounds,
        "yield": 0 if unranked else row.realised_yield.net,
    }  # fmt: skip
    return unranked != descending, by[field], row.node, row.role


@read_route(nodes, "/nodes/{node}/{role}", "getNode", "A node, its slashes and tasks", ONE)
def one_node(at: At, service: Shared, node: GivenAccount, role: RoleName, days: Days = 30) -> record_schemas.Node:
    """A node with its latest slashes and tasks. Raises Problem if there is none."""
    summary, quarter = (_summary(at, service, node, role, over) for over in (days, QUARTER))
    number = schemas.named(Role, role)
    phase = latest_phases()
    tasks = (
        select(
            Participant.task, Participant.position, Block.time.label("joined_at"),
            func.coalesce(phase.c.phase, Phase.NONE.value).label("phase"),
        )
        .join(Block, Block.number == Participant.block)
        .outerjoin(phase, phase.c.task == Participant.task)
        .where(Participant.account == node, Participant.role == number)
        .order_by(Participant.block.desc(), Participant.log_index.desc())
        .limit(HISTORY)
    )  # fmt: skip
    joined = at.db.execute(tasks).all()
    earned = _earned(at, node, number, [row.task for row in joined])
    ranks = ranks_of(at, {row.task: row.position for row in joined}) if number == Role.HOSPITAL else {}
    return record_schemas.Node(
        **dict(summary),
        quarter=record_schemas.YieldOver.model_validate(quarter, from_attributes=True),
        slash_history=slashes(at, node, number, HISTORY),
        task_history=[
            record_schemas.NodeTask(**row._mapping, earned=str(earned.get(row.task, 0)), ranks=ranks.get(row.task))
            for row in joined
        ],
    )


def _earned(at: At, node: str, role: int, tasks: Sequence[int]) -> dict[int, int]:
    """By task. Python adds up: amounts are larger than a database's integers."""
    query = select(Payment.task, Payment.amount).where(
        Payment.account == node, Payment.kind == "reward", Payment.role == role, Payment.task.in_(tasks)
    )
    found: dict[int, int] = defaultdict(int)
    for task, amount in at.db.execute(query):
        found[task] += amount
    return found


def _summary(at: At, service: Service, node: str, role: str, days: int) -> schemas.NodeSummary:
    """Raises Problem if there is no such node."""
    found = next((row for row in service.nodes.at(at, days).nodes if (row.node, row.role) == (node, role)), None)
    if found is None:
        raise Problem("not-found", f"the index has no {role} {node}: /v1/nodes lists all nodes")
    return found


@read_route(
    nodes, "/nodes/{node}/{role}/record", "getRecord",
    "A node's record: deadlines, scores, slashes, and its stake and rewards over time", ONE,
)  # fmt: skip
def node_record(at: At, service: Shared, node: GivenAccount, role: RoleName) -> record_schemas.Record:
    """A node's record. Raises Problem if there is none."""
    found = _summary(at, service, node, role, 30)
    return record_of(at, found.node, Role(schemas.named(Role, role)))


@read_route(
    nodes,
    "/nodes/{node}/{role}/history",
    "listNodeHistory",
    "Changes of a node's pool of stake, the latest first",
    LIST,
)
def list_pool_changes(at: At, request: Paged, node: GivenAccount, role: RoleName) -> schemas.Page[schemas.PoolChange]:
    """Changes of a node's pool, the latest first."""
    changes = with_log(PoolRow.__table__, EventRow.name.label("event"))
    query = changes.where(PoolRow.node == node, PoolRow.role == schemas.named(Role, role))
    cut = request.read(at.db, query, position_of(PoolRow), descending=True)
    return schemas.Page(items=[schemas.PoolChange(**row._mapping) for row in cut.rows], next=cut.next)
