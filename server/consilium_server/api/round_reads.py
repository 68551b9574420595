"""Reads rounds from the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low, quantiles
from typing import Annotated, Any

from consilium_chain.ledger.structs import (
    DOES_NOT_MATCH,
    INVALID_SCORE,
    STATISTICS_ROUND,
    Outcome,
    Phase,
    Role,
    VoidReason,
    members,
)
from fastapi import APIRouter, Path
from sqlalchemy import func, select

from consilium_server.api import schemas, task_schemas
from consilium_server.api.money_reads import payments_of_round
from consilium_server.api.paging import Cut, PageRequest
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At
from consilium_server.api.routing import LIST_OF_ONE, ONE, Paged, read_route
from consilium_server.api.schemas import name
from consilium_server.api.task_reads import participants, task_row
from consilium_server.database.tables import Block, Cohort, EventRow, OutcomeRow, Participant, PhaseStart

POINT_BYTES = 48
RoundInPath = Annotated[schemas.RoundNumber, Path(alias="round")]

rounds = APIRouter(prefix="/v1", tags=["tasks"])


@read_route(rounds, "/tasks/{task}/rounds", "listRounds", "A task's rounds, the latest first", LIST_OF_ONE)
def list_rounds(at: At, request: Paged, task: schemas.TaskNumber) -> schemas.Page[task_schemas.RoundSummary]:
    """A task's rounds, the latest first."""
    current = task_row(at, task)
    cut = cut_of_rounds(at, request, task)
    summaries = round_summaries(at, current, [row.round for row in cut.rows])
    return schemas.Page(items=[task_schemas.RoundSummary(**one) for one in summaries.values()], next=cut.next)


def cut_of_rounds(at: At, request: PageRequest, task: int) -> Cut[Any]:
    """The numbers of the task's rounds that belong on a page, the latest first."""
    begun = (PhaseStart.task == task, PhaseStart.phase.between(Phase.FORMING, Phase.SETTLING))
    numbers = select(PhaseStart.round).where(*begun).group_by(PhaseStart.round)
    return request.read(at.db, numbers, [PhaseStart.round], descending=True)


def round_summaries(at: At, row: Any, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Summaries by round, in the order of the numbers. `row`: the task's."""
    task = row.task
    started = dict(
        at.db.execute(
            select(PhaseStart.round, func.min(Block.time))
            .join(Block, Block.number == PhaseStart.block)
            .where(PhaseStart.task == task, PhaseStart.round.in_(numbers), PhaseStart.phase >= Phase.FORMING)
            .group_by(PhaseStart.round)
        ).all()
    )
    outcomes = {
        outcome.round: (outcome, time)
        for outcome, time in at.db.execute(
            select(OutcomeRow, Block.time)
            .join(Block, Block.number == OutcomeRow.block)
            .where(OutcomeRow.task == task, OutcomeRow.round.in_(numbers))
        )
    }
    summaries = {}
    for number in numbers:
        outcome, ended_at = outcomes.get(number, (None, None))
        is_current = outcome is None and row.round == number
        summaries[number] = {
            "round": number,
            "phase": row.phase or 0 if is_current else None,
            "outcome": name(Outcome(outcome.outcome if outcome else Outcome.PENDING)),
            "void_reason": outcome.reason if outcome and outcome.outcome == Outcome.VOID else VoidReason.NONE,
            "medians": outcome.medians if outcome else [],
            "accepted": list(members(outcome.accepted)) if outcome else [],
            "started_at": started.get(number, 0),
            "ended_at": ended_at,
        }
    return summaries


@dataclass(frozen=True)
class RoundEvents:
    """Logs of a round, in order: rows of `EventRow` with `block_hash` and `time`."""

    rows: Sequence[Any]

    def named(self, name: str) -> list[Any]:
        """Events of this name."""
        return [row for row in self.rows if row.name == name]

    def last(self, name: str) -> dict[str, Any] | None:
        """Values of the last event of this name; None if there is none."""
        events = self.named(name)
        return events[-1].values if events else None


def round_events(at: At, task: int, round_: int) -> RoundEvents:
    """Reads a round's events."""
    query = (
        select(*EventRow.__table__.c, Block.hash.label("block_hash"), Block.time)
        .join(Block, Block.number == EventRow.block)
        .where(EventRow.task == task, EventRow.round == round_)
        .order_by(EventRow.block, EventRow.log_index)
    )
    return RoundEvents(at.db.execute(query).all())


def cohorts_of(at: At, task: int, round_: int, hospitals: Sequence[Participant]) -> list[int]:
    """The members of each cohort, as bit maps. The statistics round has one cohort of all hospitals, without event."""
    if round_ == STATISTICS_ROUND:
        return [sum(1 << hospital.position for hospital in hospitals)]
    query = select(Cohort.members).where(Cohort.task == task, Cohort.round == round_).order_by(Cohort.item)
    return list(at.db.scalars(query))


@read_route(
    rounds, "/tasks/{task}/rounds/{round}", "getRound",
    "A round: cohorts, commitments, committee, outcome, payments, evidence", ONE,
)  # fmt: skip
def one_round(at: At, task: schemas.TaskNumber, round_: RoundInPath) -> task_schemas.Round:
    """A round with all its details. Raises Problem if it has not begun."""
    row = task_row(at, task)
    events, joined = round_events(at, task, round_), participants(at, task)
    cohorts = cohorts_of(at, task, round_, [one for one, _ in joined if one.role == Role.HOSPITAL])
    if not any(int(row.values["phase"]) != Phase.JOINING for row in events.named("PhaseStarted")):
        why = f"round {round_} of task {task} has not begun: /v1/tasks/{task}/rounds lists its rounds"
        raise Problem("not-found", why)
    summary = round_summaries(at, row, [round_])[round_]
    positions = {(one.account, one.role): one.position for one, _ in joined}
    shown = shown_points(events)
    return task_schemas.Round(
        **summary,
        task=task,
        cohorts=_cohorts(events, cohorts, summary),
        commitments=[
            task_schemas.CommitmentView(
                hospital=one.account, position=positions.get((one.account, Role.HOSPITAL)),
                **_points(one.values["pointHashes"], shown[positions.get((one.account, Role.HOSPITAL))]),
                share_bundle=_hash_or_none(one.values["shareBundle"]), transaction=one.transaction, block=one.block,
            )
            for one in events.named("UpdateCommitted")
        ],
        committee=_committee(events, len(cohorts), summary, positions),
        payments=payments_of_round(at, task, round_),
        evidence=evidence_of(events),
    )  # fmt: skip


def evidence_of(events: RoundEvents) -> list[task_schemas.Evidence]:
    """The position of each event of the round on the chain."""
    return [task_schemas.Evidence(**row._mapping) for row in events.rows]


def _cohorts(events: RoundEvents, cohorts: Sequence[int], summary: dict[str, Any]) -> list[task_schemas.CohortView]:
    survivors, medians = survivors_of(events), summary["medians"]
    is_over = summary["outcome"] == name(Outcome.SETTLED)
    return [
        task_schemas.CohortView(
            **_cohort(events, number, cohort, survivors),
            median=medians[number] if number < len(medians) else None,
            accepted=number in summary["accepted"] if is_over else None,
            fate=_fate(events, number),
        )
        for number, cohort in enumerate(cohorts)
    ]


def _cohort(events: RoundEvents, number: int, cohort: int, survivors: int) -> dict[str, Any]:
    """The values of a cohort that both views of it have."""
    return {
        "cohort": number, "members": list(members(cohort)), "survivors": list(members(cohort & survivors)),
        "is_flipped": flipped_of(events, number), "blobs": blobs_of(events, number),
    }  # fmt: skip


def _fate(events: RoundEvents, cohort: int) -> Any:
    for event, fate in (("CohortAccused", "accused"), ("CohortDropped", "dropped")):
        if any(int(one.values["cohort"]) == cohort for one in events.named(event)):
            return fate
    return "published" if any(blob.published for blob in blobs_of(events, cohort)) else "open"


def survivors_of(events: RoundEvents) -> int:
    """Bit map of hospitals; 0 until it is fixed."""
    fixed = events.last("SurvivorsFixed")
    return int(fixed["survivors"]) if fixed else 0


def flipped_of(events: RoundEvents, cohort: int) -> bool | None:
    """True if a cohort's sum was sign-flipped; None until that is disclosed."""
    return next(
        (
            bool(one.values["isFlipped"])
            for one in events.named("CohortDisclosed")
            if int(one.values["cohort"]) == cohort
        ),
        None,
    )


def blobs_of(events: RoundEvents, cohort: int) -> list[task_schemas.BlobHashes]:
    """Hashes of a cohort's blobs."""
    hashes: dict[int, dict[str, str]] = defaultdict(dict)
    for event, key in (("CohortSummed", "expected"), ("CohortPublished", "published")):
        for one in events.named(event):
            if int(one.values["cohort"]) == cohort:
                hashes[int(one.values["blob"])][key] = one.values["versionedHash"]
    return [
        task_schemas.BlobHashes(blob=blob, expected=of_blob.get("expected"), published=of_blob.get("published"))
        for blob, of_blob in sorted(hashes.items())
    ]


def shown_points(events: RoundEvents) -> defaultdict[int | None, dict[int, str]]:
    """Commitments that the contract has added up: by the hospital's position, then by blob."""
    shown: defaultdict[int | None, dict[int, str]] = defaultdict(dict)
    for one in events.named("PointsShown"):
        points = bytes.fromhex(one.values["points"].removeprefix("0x"))
        for index, position in enumerate(bytes.fromhex(one.values["hospitals"].removeprefix("0x"))):
            point = points[index * POINT_BYTES : (index + 1) * POINT_BYTES]
            shown[position][int(one.values["blob"])] = schemas.hexed(point)
    return shown


def _points(hashes: Sequence[str] | None, shown: Mapping[int, str]) -> dict[str, Any]:
    """The hashes that a hospital committed to, and the points behind them once those of all blobs are shown."""
    are_shown = hashes is not None and len(shown) == len(hashes)
    return {"point_hashes": hashes, "points": [shown[blob] for blob in sorted(shown)] if are_shown else None}


def _committee(
    events: RoundEvents, cohorts: int, summary: dict[str, Any], positions: dict[tuple[str, int], int]
) -> task_schemas.Committee:
    drawn = events.last("SeatsDrawn")
    committed = {one.account: str(one.values["commitment"]) for one in events.named("ScoresCommitted")}
    revealed = {one.account: [int(score) for score in one.values["scores"]] for one in events.named("ScoresRevealed")}
    away = {one.account for one in events.named("VoterStoodDown")}
    ballots = []
    for voter in dict.fromkeys([*committed, *(one for one in away if one is not None)]):
        scores = revealed.get(voter)
        verdict: Any = (
            "stood_down" if voter in away
            else "not_revealed" if scores is None
            else "does_not_match" if scores[0] == DOES_NOT_MATCH
            else "scored"
        )  # fmt: skip
        ballots.append(
            task_schemas.Ballot(
                voter=voter, position=positions.get((voter, Role.VOTER)), commitment=committed.get(voter),
                verdict=verdict,
                scores=[None if s == INVALID_SCORE else s for s in scores or []] if verdict == "scored" else None,
            )
        )  # fmt: skip
    is_over = summary["outcome"] != name(Outcome.PENDING)
    flipped = [flipped_of(events, cohort) or False for cohort in range(cohorts)]
    return task_schemas.Committee(
        seed=drawn["seed"] if drawn else None,
        seat_weight=str(int(drawn["seatWeight"])) if drawn else None,
        ballots=ballots,
        spread=spread(list(revealed.values()), flipped) if is_over else [],
    )


def spread(ballots: Iterable[Sequence[int]], flipped: Sequence[bool]) -> list[task_schemas.Spread]:
    """Spread of the scores of each cohort's true sum. `ballots`: as revealed, in millionths.

    It excludes ballots that say "does not match", and scores that call a sum an invalid model.
    """
    counted = [ballot for ballot in ballots if ballot and ballot[0] != DOES_NOT_MATCH]
    spreads = []
    for cohort, is_flipped in enumerate(flipped):
        at = cohort + (len(flipped) if is_flipped else 0)
        scores = sorted(b[at] for b in counted if at < len(b) and b[at] != INVALID_SCORE)
        if not scores:
            continue
        lower, _, upper = quantiles(scores, n=4, method="inclusive") if len(scores) > 1 else scores * 3
        spreads.append(
            task_schemas.Spread(
                cohort=cohort, votes=len(scores), lowest=scores[0], lower_quartile=round(lower),
                median=median_low(scores), upper_quartile=round(upper), highest=scores[-1],
            )
        )  # fmt: skip
    return spreads


@read_route(rounds, "/tasks/{task}/rounds/{round}/proof", "getProof", "Data to check a round again", ONE)
def proof(at: At, task: schemas.TaskNumber, round_: RoundInPath) -> task_schemas.Proof:
    """Data to check a round again. Raises Problem before the first commitment."""
    row = task_row(at, task)
    events = round_events(at, task, round_)
    hospitals = [one for one, _ in participants(at, task) if one.role == Role.HOSPITAL]
    cohorts = cohorts_of(at, task, round_, hospitals)
    if not events.named("UpdateCommitted"):
        raise Problem("not-found", f"round {round_} of task {task} has no commitments yet: try again later")
    committed = {one.account: one.values["pointHashes"] for one in events.named("UpdateCommitted")}
    shown = shown_points(events)
    decoys, params, survivors = events.last("DecoysSet"), row.TaskRow.params, survivors_of(events)
    deployment = at.deployment
    return task_schemas.Proof(
        chain_id=deployment.chain_id, contract=deployment.tasks, task=task, round=round_,
        spec_hash=schemas.hexed(row.TaskRow.spec_hash), digests=params["digests"],
        decoys=params["decoys"] and round_ != STATISTICS_ROUND,
        seed_commitment=decoys["seedCommitment"] if decoys else None,
        negated_delta=decoys["negatedDelta"] if decoys else None,
        hospitals=[
            task_schemas.ProofMember(
                position=one.position, hospital=one.account,
                weight=1 if round_ == STATISTICS_ROUND else one.weight,
                **_points(committed.get(one.account), shown[one.position]),
            )
            for one in hospitals
        ],
        cohorts=[
            task_schemas.ProofCohort(**_cohort(events, number, cohort, survivors))
            for number, cohort in enumerate(cohorts)
        ],
        evidence=evidence_of(events),
    )  # fmt: skip


def _hash_or_none(text: str) -> str | None:
    return None if int(text, 16) == 0 else text
