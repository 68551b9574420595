"""Reads tasks from the tables."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.structs import Phase, Role, TaskParams
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_core.visible_text import shown
from consilium_zk.errors import ZkError
from sqlalchemy import Select, func, select

from consilium_server.api import schemas, task_schemas
from consilium_server.api.paging import Asked, Cut, behind
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At, latest
from consilium_server.api.schemas import name
from consilium_server.api.task_schemas import AMOUNTS, Terms
from consilium_server.database.tables import Block, EventRow, Funding, Participant, Payment, PhaseStart, Spec, TaskRow

_TERMS = [field.name for field in fields(TaskParams) if field.name not in ("spec_hash", "aggregator")]


@dataclass(frozen=True)
class TaskFilter:
    """Filters and order of a list of tasks; None for any."""

    phase: str | None = None
    operator: str | None = None
    aggregator: str | None = None
    text: str | None = None
    sort: str = "-task"


# Tasks

_FUNDED = latest(Funding, [Funding.task])
_POOL = func.coalesce(_FUNDED.c.pool, TaskRow.pool)  # with what its operator added


def latest_phases(*where: Any) -> Any:
    """A subquery of each task's latest phase."""
    return latest(PhaseStart, [PhaseStart.task], *where)


def _tasks(*where: Any) -> tuple[Select[Any], Any]:
    phase = latest_phases(*where)
    found = (
        select(TaskRow, Block.time, phase.c.phase, phase.c.round, phase.c.deadline, Spec.text, _POOL.label("pool"))
        .join(Block, Block.number == TaskRow.block)
        .outerjoin(phase, phase.c.task == TaskRow.task)
        .outerjoin(_FUNDED, _FUNDED.c.task == TaskRow.task)
        .outerjoin(Spec, Spec.hash == TaskRow.spec_hash)
    )
    return found, phase


def all_pools(at: At) -> int:
    """Sum of all pools, in the token's smallest unit."""
    return sum(at.db.scalars(select(_POOL).select_from(TaskRow).outerjoin(_FUNDED, _FUNDED.c.task == TaskRow.task)))


def list_tasks(at: At, wanted: TaskFilter, asked: Asked) -> schemas.Page[task_schemas.TaskSummary]:
    """A page of tasks."""
    found, phase = _tasks()
    if wanted.phase is not None:
        found = found.where(phase.c.phase == schemas.named(Phase, wanted.phase))
    if wanted.operator is not None:
        found = found.where(TaskRow.operator == wanted.operator)
    if wanted.aggregator is not None:
        found = found.where(TaskRow.aggregator == wanted.aggregator)
    if wanted.text is not None:
        found = found.where(Spec.text.icontains(wanted.text, autoescape=True))
    descending = wanted.sort.startswith("-")
    columns: list[Any] = [TaskRow.task] if wanted.sort.endswith("task") else [_POOL, TaskRow.task]
    place = asked.start()
    if place is not None and len(columns) == 2:
        place = [int(place[0]), place[1]]
    found = found.where(*behind(columns, place, descending))
    found = found.order_by(*(c.desc() if descending else c.asc() for c in columns)).limit(asked.limit + 1)

    def place_of(row: Any) -> list[int | str]:
        return [row[0].task] if len(columns) == 1 else [str(row.pool), row[0].task]

    cut: Cut[Any] = asked.cut(at.db.execute(found).all(), place_of)
    return schemas.Page(items=[task_schemas.TaskSummary(**_summary(row)) for row in cut.rows], next=cut.next)


def _summary(row: Any) -> dict[str, Any]:
    task, time, phase, round_, deadline, text, pool = row
    spec, _ = spec_of(text) if text is not None else (None, None)
    return {
        "task": task.task, "name": spec.name if spec else None, "operator": task.operator,
        "aggregator": task.aggregator, "spec_hash": schemas.hexed(task.spec_hash), "pool": str(pool),
        "phase": name(Phase(phase or 0)), "round": round_ or 0, "rounds": int(task.params["rounds"]),
        "deadline": deadline or 0, "proposed_at": time, "proposed_in": task.block,
    }  # fmt: skip


@lru_cache(maxsize=256)
def spec_of(text: str) -> tuple[TaskSpec | None, str | None]:
    """The parsed task file, or the reason why it is invalid: operators may propose invalid files."""
    try:
        return parse_task_spec(text.encode()), None
    except (SpecInvalid, ZkError) as error:
        return None, str(error)


def spec_view(spec: TaskSpec) -> task_schemas.SpecFile:
    """A task file as the API says it."""
    privacy = spec.privacy
    return task_schemas.SpecFile(
        name=spec.name, model=spec.model.name, parameters=spec.parameters, data=spec.data.kind,
        classes=[shown(one) for one in spec.data.classes], metric=spec.judging.metric, lanes_per_update=spec.lanes,
        lane_bits=spec.update_layout.lane_bits, update_blobs=spec.update_blobs, statistics_blobs=spec.statistics_blobs,
        privacy=None if privacy is None else task_schemas.Privacy(
            epsilon=privacy.epsilon, delta=privacy.delta, max_grad_norm=privacy.max_grad_norm
        ),
    )  # fmt: skip


def terms_view(params: dict[str, Any]) -> Any:
    """Terms as the API says them."""
    return Terms(**{key: str(int(params[key])) if key in AMOUNTS else params[key] for key in _TERMS})


def one_task(at: At, task: int) -> task_schemas.Task:
    """A task with money and participants. Raises Problem if there is none."""
    row = task_row(at, task)
    text = row[5]
    spec, fault = spec_of(text) if text is not None else (None, None)
    payments = at.db.scalars(select(Payment).where(Payment.task == task)).all()
    sums: dict[tuple[str, str], int] = defaultdict(int)  # by account and kind
    for payment in payments:
        sums[payment.account, payment.kind] += payment.amount
    kinds = ("reward", "bounty", "refund", "slash")
    reward, bounty, refund, slash = (sum(v for (_, k), v in sums.items() if k == kind) for kind in kinds)
    pool = row.pool
    unpaid, has_ended = pool - reward - bounty - refund, row.phase == Phase.ENDED
    released = set(
        at.db.scalars(select(EventRow.account).where(EventRow.task == task, EventRow.name == "BondReleased"))
    )

    def bond(one: Participant) -> int:
        given = int(row[0].params[f"{name(Role(one.role))}_bond"])
        return 0 if one.account in released else given - sums[one.account, "slash"]

    return task_schemas.Task(
        **_summary(row),
        **_stop(at, row),
        terms=terms_view(row[0].params | {"pool": pool}),
        spec=spec_view(spec) if spec else None,
        spec_fault=fault,
        money=task_schemas.Money(
            pool=str(pool), rewards=str(reward), bounties=str(bounty), refund=str(refund),
            left=str(0 if has_ended else unpaid), burnt=str(unpaid if has_ended else 0), slashed=str(slash),
        ),
        participants=[
            task_schemas.Member(
                account=one.account, role=name(Role(one.role)), position=one.position, weight=one.weight,
                joined_at=time, earned=str(sums[one.account, "reward"]), slashed=str(sums[one.account, "slash"]),
                bond=str(bond(one)),
            )
            for one, time in participants(at, task)
        ],
    )  # fmt: skip


def _stop(at: At, row: Any) -> dict[str, Any]:
    """The last round, as `consilium_chain.rounds.machine.last_round` has it, once the operator stopped the task."""
    task, phase, reached = row[0], row[2], row[3]
    found = select(EventRow.round).where(EventRow.task == task.task, EventRow.name == "TaskStopped")
    stopped, rounds = at.db.scalar(found), int(task.params["rounds"])
    last = rounds if stopped is None else min(max(stopped, 1), rounds)
    return {"stopping": stopped is not None, "last_round": reached if phase == Phase.ENDED else last}


def task_row(at: At, task: int) -> Any:
    """The task's row. Raises Problem if there is none."""
    found, _ = _tasks(PhaseStart.task == task)
    row = at.db.execute(found.where(TaskRow.task == task)).first()
    if row is None:
        raise Problem("not-found", f"task {task} is not in the index: see /v1/tasks for those that are")
    return row


def participants(at: At, task: int) -> list[tuple[Participant, int]]:
    """Participants of a task, each with the time at which it joined."""
    found = (
        select(Participant, Block.time)
        .join(Block, Block.number == Participant.block)
        .where(Participant.task == task)
        .order_by(Participant.role, Participant.position)
    )
    return [(row[0], row[1]) for row in at.db.execute(found)]
