"""Reads rounds from the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

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
from sqlalchemy import func, select

from consilium_server.api import schemas, task_schemas
from consilium_server.api.money_reads import payment_views, payments_of_round
from consilium_server.api.paging import Asked, behind
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At
from consilium_server.api.schemas import name
from consilium_server.api.task_reads import participants, task_row
from consilium_server.database.tables import Block, Cohort, EventRow, OutcomeRow, Participant, PhaseStart

POINT_BYTES = 48


# Rounds


def list_rounds(at: At, task: int, asked: Asked) -> schemas.Page[task_schemas.RoundSummary]:
    """A task's rounds, the latest first."""
    current = task_row(at, task)
    numbers = (
        select(PhaseStart.round)
        .where(PhaseStart.task == task, PhaseStart.phase.between(Phase.FORMING, Phase.SETTLING))
        .where(*behind([PhaseStart.round], asked.start(), descending=True))
        .group_by(PhaseStart.round)
        .order_by(PhaseStart.round.desc())
        .limit(asked.limit + 1)
    )
    cut = asked.cut(list(at.db.scalars(numbers)), lambda number: [number])
    found = _round_summaries(at, current, cut.rows)
    return schemas.Page(items=[task_schemas.RoundSummary(**found[number]) for number in cut.rows], next=cut.next)


def _round_summaries(at: At, row: Any, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
    task = row[0].task
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
    found = {}
    for number in numbers:
        outcome, ended_at = outcomes.get(number, (None, None))
        is_current = outcome is None and row[3] == number
        found[number] = {
            "round": number,
            "phase": name(Phase(row[2] or 0)) if is_current else None,
            "outcome": name(Outcome(outcome.outcome if outcome else Outcome.PENDING)),
            "void_reason": name(VoidReason(outcome.reason if outcome and outcome.outcome == Outcome.VOID else 0)),
            "medians": outcome.medians if outcome else [],
            "accepted": list(members(outcome.accepted)) if outcome else [],
            "started_at": started.get(number, 0),
            "ended_at": ended_at,
        }
    return found


@dataclass(frozen=True)
class RoundEvents:
    """Logs of a round, in order."""

    rows: list[tuple[EventRow, bytes, int]]  # with their block's hash and time

    def named(self, *wanted: str) -> list[EventRow]:
        """Events of these names."""
        return [row for row, _, _ in self.rows if row.name in wanted]

    def last(self, wanted: str) -> dict[str, Any] | None:
        """Values of the last event of a name; None if there is none."""
        found = self.named(wanted)
        return found[-1].values if found else None


def round_events(at: At, task: int, round_: int) -> RoundEvents:
    """Reads a round's events."""
    found = (
        select(EventRow, Block.hash, Block.time)
        .join(Block, Block.number == EventRow.block)
        .where(EventRow.task == task, EventRow.round == round_)
        .order_by(EventRow.block, EventRow.log_index)
    )
    return RoundEvents([(row[0], row[1], row[2]) for row in at.db.execute(found)])


def cohorts_of(at: At, task: int, round_: int, hospitals: Sequence[Participant]) -> list[int]:
    """The members of each cohort, as bit maps. The statistics are of all hospitals together, and no event says so."""
    found = select(Cohort.members).where(Cohort.task == task, Cohort.round == round_).order_by(Cohort.item)
    everybody = [sum(1 << hospital.position for hospital in hospitals)]
    return everybody if round_ == STATISTICS_ROUND else list(at.db.scalars(found))


def one_round(at: At, task: int, round_: int) -> task_schemas.Round:
    """A round with all its details. Raises Problem if it has not begun."""
    row = task_row(at, task)
    events, joined = round_events(at, task, round_), participants(at, task)
    cohorts = cohorts_of(at, task, round_, [one for one, _ in joined if one.role == Role.HOSPITAL])
    if not any(row.name == "PhaseStarted" and int(row.values["phase"]) != Phase.JOINING for row, _, _ in events.rows):
        raise Problem("not-found", f"round {round_} of task {task} has not begun: see /v1/tasks/{task}/rounds")
    summary = _round_summaries(at, row, [round_])[round_]
    positions = {(one.account, one.role): one.position for one, _ in joined}
    return task_schemas.Round(
        **summary,
        task=task,
        cohorts=_cohorts(events, cohorts, summary),
        commitments=[
            task_schemas.CommitmentView(
                hospital=str(one.account), position=positions.get((str(one.account), Role.HOSPITAL)),
                points=points_of(one.values), dealing=_hash_or_none(one.values["dealing"]),
                transaction=schemas.hexed(one.transaction), block=one.block,
            )
            for one in events.named("UpdateCommitted")
        ],
        committee=_committee(events, len(cohorts), summary, positions),
        payments=payment_views(payments_of_round(at, task, round_)),
        evidence=evidence_of(events),
    )  # fmt: skip


def evidence_of(events: RoundEvents) -> list[task_schemas.Evidence]:
    """Place of every event of the round."""
    return [
        task_schemas.Evidence(
            name=row.name, time=time, block=row.block, block_hash=schemas.hexed(hash_), log_index=row.log_index,
            transaction=schemas.hexed(row.transaction),
        )
        for row, hash_, time in events.rows
    ]  # fmt: skip


def _cohorts(events: RoundEvents, cohorts: Sequence[int], summary: dict[str, Any]) -> list[task_schemas.CohortView]:
    survivors, medians = survivors_of(events), summary["medians"]
    is_over = summary["outcome"] == name(Outcome.SETTLED)
    found = []
    for number, cohort in enumerate(cohorts):
        blobs = blobs_of(events, number)
        found.append(
            task_schemas.CohortView(
                cohort=number,
                members=list(members(cohort)),
                survivors=list(members(cohort & survivors)),
                median=medians[number] if number < len(medians) else None,
                accepted=number in summary["accepted"] if is_over else None,
                fate=_fate(events, number, blobs),
                is_turned=turned_of(events, number),
                blobs=blobs,
            )
        )
    return found


def _fate(events: RoundEvents, cohort: int, blobs: Sequence[task_schemas.BlobHashes]) -> Any:
    for event, fate in (("CohortAccused", "accused"), ("CohortDropped", "dropped")):
        if any(int(one.values["cohort"]) == cohort for one in events.named(event)):
            return fate
    return "published" if any(blob.published for blob in blobs) else "open"


def survivors_of(events: RoundEvents) -> int:
    """Bit map of hospitals; 0 until it is fixed."""
    fixed = events.last("SurvivorsFixed")
    return int(fixed["survivors"]) if fixed else 0


def turned_of(events: RoundEvents, cohort: int) -> bool | None:
    """True if a cohort's sum was sign-flipped; None until that is disclosed."""
    return next(
        (bool(one.values["isTurned"]) for one in events.named("CohortOpened") if int(one.values["cohort"]) == cohort),
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
        task_schemas.BlobHashes(blob=blob, expected=found.get("expected"), published=found.get("published"))
        for blob, found in sorted(hashes.items())
    ]


def points_of(values: dict[str, Any]) -> list[str]:
    """Commitments of an UpdateCommitted, split by blob."""
    text = str(values["points"]).removeprefix("0x")
    return ["0x" + text[i : i + 2 * POINT_BYTES] for i in range(0, len(text), 2 * POINT_BYTES)]


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
                voter=str(voter), position=positions.get((str(voter), Role.VOTER)), commitment=committed.get(voter),
                verdict=verdict,
                scores=[None if s == INVALID_SCORE else s for s in scores or []] if verdict == "scored" else None,
            )
        )  # fmt: skip
    is_over = summary["outcome"] != name(Outcome.PENDING)
    turned = [turned_of(events, cohort) or False for cohort in range(cohorts)]
    return task_schemas.Committee(
        seed=drawn["seed"] if drawn else None,
        seat_weight=str(int(drawn["seatWeight"])) if drawn else None,
        ballots=ballots,
        spread=spread(list(revealed.values()), turned) if is_over else [],
    )


def spread(ballots: Iterable[Sequence[int]], turned: Sequence[bool]) -> list[task_schemas.Spread]:
    """Spread of the scores of each cohort's true sum. `ballots`: as revealed, in millionths.

    It leaves out ballots that say "does not match", and scores that call a sum no valid model.
    """
    counted = [ballot for ballot in ballots if ballot and ballot[0] != DOES_NOT_MATCH]
    found = []
    for cohort, is_turned in enumerate(turned):
        place = cohort + (len(turned) if is_turned else 0)
        scores = sorted(b[place] for b in counted if place < len(b) and b[place] != INVALID_SCORE)
        if not scores:
            continue
        lower, _, upper = quantiles(scores, n=4, method="inclusive") if len(scores) > 1 else scores * 3
        found.append(
            task_schemas.Spread(
                cohort=cohort, votes=len(scores), lowest=scores[0], lower_quartile=round(lower),
                median=round(median(scores)), upper_quartile=round(upper), highest=scores[-1],
            )
        )  # fmt: skip
    return found


def proof(at: At, task: int, round_: int) -> task_schemas.Proof:
    """Data to check a round again. Raises Problem if nobody has committed yet."""
    row = task_row(at, task)
    events = round_events(at, task, round_)
    hospitals = [one for one, _ in participants(at, task) if one.role == Role.HOSPITAL]
    cohorts = cohorts_of(at, task, round_, hospitals)
    if not events.named("UpdateCommitted"):
        raise Problem("not-found", f"nobody has committed to round {round_} of task {task} yet: wait")
    committed = {one.account: points_of(one.values) for one in events.named("UpdateCommitted")}
    canaries, params, survivors = events.last("CanariesSet"), row[0].params, survivors_of(events)
    deployment = at.deployment
    return task_schemas.Proof(
        chain_id=deployment.chain_id, contract=deployment.tasks, task=task, round=round_,
        spec_hash=schemas.hexed(row[0].spec_hash), digests=params["digests"],
        canaries=params["canaries"] and round_ != STATISTICS_ROUND,
        seed_commitment=canaries["seedCommitment"] if canaries else None,
        retreat=canaries["retreat"] if canaries else None,
        hospitals=[
            task_schemas.ProofMember(
                position=one.position, hospital=one.account,
                weight=1 if round_ == STATISTICS_ROUND else one.weight, points=committed.get(one.account),
            )
            for one in hospitals
        ],
        cohorts=[
            task_schemas.ProofCohort(
                cohort=number, members=list(members(cohort)), survivors=list(members(cohort & survivors)),
                is_turned=turned_of(events, number), blobs=blobs_of(events, number),
            )
            for number, cohort in enumerate(cohorts)
        ],
        evidence=evidence_of(events),
    )  # fmt: skip


def _hash_or_none(text: str) -> str | None:
    return None if int(text, 16) == 0 else text
