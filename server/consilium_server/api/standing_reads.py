"""Reads an arena's ranks and rewards from the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from consilium_chain.ledger.structs import Outcome, Role, members
from consilium_chain.settlement.payouts import ranking
from fastapi import APIRouter
from sqlalchemy import select

from consilium_server.api import record_schemas, schemas, standing_schemas
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At
from consilium_server.api.round_reads import cut_of_rounds, round_summaries
from consilium_server.api.routing import LIST_OF_ONE, Paged, read_route
from consilium_server.api.schemas import name
from consilium_server.api.task_reads import participants, task_row
from consilium_server.database.tables import Cohort, EventRow, OutcomeRow, Payment, TaskRow

MOST_ROUNDS = 1_000

standings = APIRouter(prefix="/v1", tags=["tasks"])


@read_route(
    standings,
    "/tasks/{task}/standings",
    "listStandings",
    "An arena's ranks by round, the latest round first",
    LIST_OF_ONE,
)
def list_standings(at: At, request: Paged, task: schemas.TaskNumber) -> schemas.Page[standing_schemas.ArenaRound]:
    """An arena's ranks and rewards by round. Raises Problem for a task that is no arena."""
    current = task_row(at, task)
    params = current.TaskRow.params
    if not params["rank_decay_bps"]:
        raise Problem("not-found", f"task {task} is no arena: its hospitals share pay by weight and improvement")
    cut = cut_of_rounds(at, request, task)
    numbers = [row.round for row in cut.rows]
    summaries = round_summaries(at, current, numbers)
    hospitals = {one.position: one.account for one, _ in participants(at, task) if one.role == Role.HOSPITAL}
    alone, present, paid = _alone(at, task, numbers), _present(at, task, numbers), _paid(at, task, numbers)
    items = [
        standing_schemas.ArenaRound(
            round=number,
            phase=summary["phase"],
            outcome=summary["outcome"],
            ended_at=summary["ended_at"],
            standings=_standings(
                summary, int(params["rank_floor"]), alone[number], present.get(number, 0), hospitals, paid[number]
            ),
        )
        for number, summary in summaries.items()
        if number in alone
    ]
    return schemas.Page(items=items, next=cut.next)


def ranks_of(at: At, positions: Mapping[int, int]) -> dict[int, record_schemas.Ranks]:
    """A hospital's results in those of its tasks that are arenas, by task. `positions`: its own, by task."""
    terms = at.db.execute(select(TaskRow.task, TaskRow.params).where(TaskRow.task.in_(positions)))
    floors = {task: int(params["rank_floor"]) for task, params in terms if params["rank_decay_bps"]}
    query = (
        select(Cohort.task, Cohort.item, Cohort.members, OutcomeRow.medians)
        .join(OutcomeRow, (OutcomeRow.task == Cohort.task) & (OutcomeRow.round == Cohort.round))
        .where(
            Cohort.task.in_(floors), Cohort.members.in_({1 << positions[task] for task in floors}),
            OutcomeRow.outcome == Outcome.SETTLED, Cohort.round > 0,
        )
        .order_by(OutcomeRow.block.desc(), OutcomeRow.log_index.desc())
        .limit(MOST_ROUNDS)
    )  # fmt: skip
    found: dict[int, list[int | None]] = defaultdict(list)
    for task, cohort, alone, medians in at.db.execute(query):
        if alone == 1 << positions[task]:  # other tasks' positions are in the query, too
            ranked = ranking(medians, floors[task])
            found[task].append(ranked.index(cohort) + 1 if cohort in ranked else None)
    return {task: _summed(ranks) for task, ranks in found.items()}


def _summed(ranks: Sequence[int | None]) -> record_schemas.Ranks:
    ranked = [rank for rank in ranks if rank is not None]
    return record_schemas.Ranks(
        rounds=len(ranks), ranked=len(ranked), firsts=ranked.count(1), best=min(ranked, default=None)
    )


def _standings(
    summary: Mapping[str, Any], floor: int, alone: Mapping[int, int], present: int, hospitals: Mapping[int, str],
    paid: Mapping[str, int],
) -> list[standing_schemas.Standing]:  # fmt: skip
    """The hospitals of a round, the first rank first. Before the round has settled they have no median and no rank."""
    settled = summary["outcome"] == name(Outcome.SETTLED)
    medians: list[int] = summary["medians"] if settled else []
    ranks = {cohort: rank for rank, cohort in enumerate(ranking(medians, floor), 1)}
    found = [
        standing_schemas.Standing(
            hospital=hospitals[position],
            position=position,
            median=medians[cohort] if settled and present >> position & 1 else None,
            rank=ranks.get(cohort),
            reward=str(paid.get(hospitals[position], 0)),
        )
        for cohort, position in alone.items()
    ]
    return sorted(found, key=lambda one: (one.rank or len(found) + 1, -(one.median or 0), one.position))


def _alone(at: At, task: int, numbers: Sequence[int]) -> dict[int, dict[int, int]]:
    """By round: each cohort's one hospital, by position. A round without cohorts is left out."""
    query = select(Cohort.round, Cohort.item, Cohort.members).where(Cohort.task == task, Cohort.round.in_(numbers))
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for round_, cohort, joined in at.db.execute(query.order_by(Cohort.round, Cohort.item)):
        found[round_][cohort] = next(members(joined))
    return dict(found)


def _present(at: At, task: int, numbers: Sequence[int]) -> dict[int, int]:
    """By round: the hospitals whose updates are in sums, as a bit map."""
    query = select(EventRow.round, EventRow.values).where(
        EventRow.task == task, EventRow.name == "SurvivorsFixed", EventRow.round.in_(numbers)
    )
    return {round_: int(values["survivors"]) for round_, values in at.db.execute(query) if round_ is not None}


def _paid(at: At, task: int, numbers: Sequence[int]) -> defaultdict[int, dict[str, int]]:
    """By round: each hospital's reward."""
    query = select(Payment.round, Payment.account, Payment.amount).where(
        Payment.task == task, Payment.round.in_(numbers), Payment.kind == "reward", Payment.role == Role.HOSPITAL
    )
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for round_, account, amount in at.db.execute(query):
        if round_ is not None:
            found[round_][account] = amount
    return found
