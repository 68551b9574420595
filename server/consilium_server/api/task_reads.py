"""Reads tasks from the tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import fields
from functools import lru_cache
from typing import Annotated, Any, Literal

from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.structs import Outcome, Phase, Role, TaskParams, members
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_core.visible_text import shown
from consilium_zk.errors import ZkError
from fastapi import APIRouter, Query
from sqlalchemy import Select, func, select

from consilium_server.api import schemas, task_schemas
from consilium_server.api.asked import asked_view
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At
from consilium_server.api.routing import LIST, ONE, Paged, read_route
from consilium_server.api.schemas import name
from consilium_server.api.task_schemas import AMOUNTS, Terms
from consilium_server.database.tables import (
    Block,
    Cohort,
    EventRow,
    Funding,
    OutcomeRow,
    Participant,
    Payment,
    PhaseStart,
    Spec,
    TaskRow,
)
from consilium_server.index.store import latest

tasks = APIRouter(prefix="/v1", tags=["tasks"])
_TERMS = [field.name for field in fields(TaskParams) if field.name not in ("spec_hash", "aggregator")]


_FUNDED = latest(Funding, [Funding.task])
_POOL = func.coalesce(_FUNDED.c.pool, TaskRow.pool).label("current_pool")  # with later additions by its operator


def latest_phases(*where: Any) -> Any:
    """A subquery of each task's latest phase."""
    return latest(PhaseStart, [PhaseStart.task], *where)


def _tasks(*where: Any) -> tuple[Select[Any], Any]:
    phase = latest_phases(*where)
    query = (
        select(TaskRow, TaskRow.task, Block.time, phase.c.phase, phase.c.round, phase.c.deadline, Spec.text, _POOL)
        .join(Block, Block.number == TaskRow.block)
        .outerjoin(phase, phase.c.task == TaskRow.task)
        .outerjoin(_FUNDED, _FUNDED.c.task == TaskRow.task)
        .outerjoin(Spec, Spec.hash == TaskRow.spec_hash)
    )
    return query, phase


def task_query() -> Select[Any]:
    """Tasks with their task file's text and their present phase, round and pool."""
    return _tasks()[0]


def all_pools(at: At) -> int:
    """Sum of all pools, in the token's smallest unit."""
    return sum(at.db.scalars(select(_POOL).select_from(TaskRow).outerjoin(_FUNDED, _FUNDED.c.task == TaskRow.task)))


@read_route(tasks, "/tasks", "listTasks", "Tasks, the latest first", LIST)
def list_tasks(
    at: At,
    request: Paged,
    phase: schemas.PhaseName | None = None,
    operator: schemas.GivenAccount | None = None,
    aggregator: schemas.GivenAccount | None = None,
    text: Annotated[
        str | None,
        Query(
            min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$", description="text that the task file contains"
        ),
    ] = None,
    sort: Literal["task", "-task", "pool", "-pool"] = "-task",
) -> schemas.Page[task_schemas.TaskSummary]:
    """A page of tasks with these properties; None for any."""
    query, latest_phase = _tasks()
    if phase is not None:
        query = query.where(latest_phase.c.phase == schemas.named(Phase, phase))
    if operator is not None:
        query = query.where(TaskRow.operator == operator)
    if aggregator is not None:
        query = query.where(TaskRow.aggregator == aggregator)
    if text is not None:
        query = query.where(Spec.text.icontains(text, autoescape=True))
    columns: list[Any] = [TaskRow.task] if sort.endswith("task") else [_POOL, TaskRow.task]
    cut = request.read(at.db, query, columns, descending=sort.startswith("-"))
    return schemas.Page(items=[task_schemas.TaskSummary(**_summary(row)) for row in cut.rows], next=cut.next)


def _summary(row: Any) -> dict[str, Any]:
    task = row.TaskRow
    spec, _ = spec_of(row.text) if row.text is not None else (None, None)
    return {
        "task": task.task, "name": spec.name if spec else None,
        "asked": asked_view(spec.data) if spec else None, "operator": task.operator,
        "aggregator": task.aggregator, "spec_hash": task.spec_hash, "pool": row.current_pool, "phase": row.phase or 0,
        "round": row.round or 0, "rounds": int(task.params["rounds"]), "deadline": row.deadline or 0,
        "proposed_at": row.time, "proposed_in": task.block,
    }  # fmt: skip


@lru_cache(maxsize=256)
def spec_of(text: str) -> tuple[TaskSpec | None, str | None]:
    """The parsed task file, or the reason why it is invalid. Operators may propose invalid files."""
    try:
        return parse_task_spec(text.encode()), None
    except (SpecInvalid, ZkError) as error:
        return None, str(error)


def spec_view(spec: TaskSpec) -> task_schemas.SpecFile:
    """Content of a task file for the API."""
    privacy = spec.privacy
    return task_schemas.SpecFile(
        name=spec.name, model=spec.model.name, parameters=spec.parameters, coordinates=spec.coordinates,
        data=spec.data.kind, classes=[shown(one) for one in spec.data.classes],
        question=shown(spec.data.asked.in_words), metric=spec.judging.metric, lanes_per_update=spec.lanes,
        lane_bits=spec.update_layout.lane_bits, update_blobs=spec.update_blobs, statistics_blobs=spec.statistics_blobs,
        privacy=None if privacy is None else task_schemas.Privacy(
            epsilon=privacy.epsilon, delta=privacy.delta, max_grad_norm=privacy.max_grad_norm
        ),
        sale=spec.sale,
    )  # fmt: skip


def terms_view(params: dict[str, Any]) -> Any:
    """Terms of a task for the API."""
    return Terms(**{key: int(params[key]) if key in AMOUNTS else params[key] for key in _TERMS})


@read_route(tasks, "/tasks/{task}", "getTask", "A task: terms, file, money, participants", ONE)
def one_task(at: At, task: schemas.TaskNumber) -> task_schemas.Task:
    """A task with money and participants. Raises Problem if there is none."""
    row = task_row(at, task)
    spec, fault = spec_of(row.text) if row.text is not None else (None, None)
    payments = at.db.scalars(select(Payment).where(Payment.task == task)).all()
    accepted = accepted_rounds(at, task)
    sums: dict[tuple[str, str], int] = defaultdict(int)  # by account and kind
    for payment in payments:
        sums[payment.account, payment.kind] += payment.amount
    kinds = ("reward", "bounty", "refund", "slash")
    reward, bounty, refund, slash = (sum(v for (_, k), v in sums.items() if k == kind) for kind in kinds)
    pool = row.current_pool
    unpaid, has_ended = pool - reward - bounty - refund, row.phase == Phase.ENDED
    released = set(
        at.db.scalars(select(EventRow.account).where(EventRow.task == task, EventRow.name == "BondReleased"))
    )

    def bond(one: Participant) -> int:
        whole = int(row.TaskRow.params[f"{name(Role(one.role))}_bond"])
        return 0 if one.account in released else whole - sums[one.account, "slash"]

    return task_schemas.Task(
        **_summary(row),
        **_stop(at, row),
        shards=shards_of(at, row),
        terms=terms_view(row.TaskRow.params | {"pool": pool}),
        spec=spec_view(spec) if spec else None,
        spec_fault=fault,
        money=task_schemas.Money(
            pool=str(pool), rewards=str(reward), bounties=str(bounty), refund=str(refund),
            left=str(0 if has_ended else unpaid), burnt=str(unpaid if has_ended else 0), slashed=str(slash),
        ),
        participants=[
            task_schemas.Member(
                account=one.account, role=name(Role(one.role)), position=one.position, weight=one.weight,
                accepted=accepted[one.position] if one.role == Role.HOSPITAL else 0, joined_at=time,
                earned=str(sums[one.account, "reward"]), slashed=str(sums[one.account, "slash"]), bond=str(bond(one)),
            )
            for one, time in participants(at, task)
        ],
    )  # fmt: skip


def _stop(at: At, row: Any) -> dict[str, Any]:
    """The task's last round, by the rule of `consilium_chain.rounds.machine.last_round`."""
    query = select(EventRow.round).where(EventRow.task == row.task, EventRow.name == "TaskStopped")
    stopped, rounds = at.db.scalar(query), int(row.TaskRow.params["rounds"])
    last = rounds if stopped is None else min(max(stopped, 1), rounds)
    return {"stopping": stopped is not None, "last_round": row.round if row.phase == Phase.ENDED else last}


def task_row(at: At, task: int) -> Any:
    """The task's row. Raises Problem if there is none."""
    query, _ = _tasks(PhaseStart.task == task)
    row = at.db.execute(query.where(TaskRow.task == task)).first()
    if row is None:
        raise Problem("not-found", f"the index has no task {task}: /v1/tasks lists all tasks")
    return row


def shards_of(at: At, row: Any) -> list[int]:
    """The tasks that train one model with this one, itself included: those of its proposal. `row`: of `task_row`."""
    task = row.TaskRow
    query = (
        select(TaskRow.task, TaskRow.params)
        .where(TaskRow.block == task.block, TaskRow.operator == task.operator, TaskRow.spec_hash == task.spec_hash)
        .order_by(TaskRow.task)
    )
    alike = [number for number, params in at.db.execute(query) if params == task.params]
    # One transaction takes all numbers of a proposal, so that each whole proposal follows another.
    first = alike.index(task.task) // (count := int(task.params["shards"])) * count
    return alike[first : first + count]


def participants(at: At, task: int) -> list[tuple[Participant, int]]:
    """Participants of a task, each with the time at which it joined."""
    query = (
        select(Participant, Block.time)
        .join(Block, Block.number == Participant.block)
        .where(Participant.task == task)
        .order_by(Participant.role, Participant.position)
    )
    return [(row[0], row[1]) for row in at.db.execute(query)]


def accepted_rounds(at: At, task: int) -> Counter[int]:
    """By a hospital's position: the settled training rounds whose accepted sums have it."""
    fixed = select(EventRow.round, EventRow.values).where(EventRow.task == task, EventRow.name == "SurvivorsFixed")
    survivors = {round_: int(values["survivors"]) for round_, values in at.db.execute(fixed)}
    of_round = (OutcomeRow.task == Cohort.task) & (OutcomeRow.round == Cohort.round)
    query = select(Cohort.round, Cohort.item, Cohort.members, OutcomeRow.accepted).join(OutcomeRow, of_round)
    settled = query.where(Cohort.task == task, OutcomeRow.outcome == Outcome.SETTLED)
    return Counter(
        position
        for round_, cohort, joined, accepted in at.db.execute(settled)
        if accepted >> cohort & 1
        for position in members(joined & survivors.get(round_, 0))
    )
