"""Tasks and rounds, as the tables tell of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from statistics import median, quantiles
from typing import Any

from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.structs import (
    DOES_NOT_MATCH,
    INVALID_SCORE,
    STATISTICS_ROUND,
    Outcome,
    Phase,
    Role,
    TaskParams,
    VoidReason,
    members,
)
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_core.visible_text import shown
from consilium_zk.errors import ZkError
from sqlalchemy import Select, func, select

from consilium_server.api import schemas
from consilium_server.api.money_reads import payment_views, payments_of_round
from consilium_server.api.paging import Asked, Cut, behind
from consilium_server.api.problems import Problem
from consilium_server.api.reading import At, latest
from consilium_server.api.schemas import AMOUNTS, Terms, name
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

POINT_BYTES = 48
_TERMS = [field.name for field in fields(TaskParams) if field.name not in ("spec_hash", "aggregator")]


@dataclass(frozen=True)
class TaskFilter:
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
    return sum(at.db.scalars(select(_POOL).select_from(TaskRow).outerjoin(_FUNDED, _FUNDED.c.task == TaskRow.task)))


def list_tasks(at: At, wanted: TaskFilter, asked: Asked) -> schemas.Page[schemas.TaskSummary]:
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
    return schemas.Page(items=[schemas.TaskSummary(**_summary(row)) for row in cut.rows], next=cut.next)


def _summary(row: Any) -> dict[str, Any]:
    task, time, phase, round_, deadline, text, pool = row
    spec, _ = spec_of(text) if text is not None else (None, None)
    return {
        "task": task.task, "name": spec.name if spec else None, "operator": task.operator,
        "aggregator": task.aggregator, "spec_hash": hexed(task.spec_hash), "pool": str(pool),
        "phase": name(Phase(phase or 0)), "round": round_ or 0, "rounds": int(task.params["rounds"]),
        "deadline": deadline or 0, "proposed_at": time, "proposed_in": task.block,
    }  # fmt: skip


@lru_cache(maxsize=256)
def spec_of(text: str) -> tuple[TaskSpec | None, str | None]:
    """What a task file says, or why it says nothing: operators may propose files that do not hold."""
    try:
        return parse_task_spec(text.encode()), None
    except (SpecInvalid, ZkError) as error:
        return None, str(error)


def spec_view(spec: TaskSpec) -> schemas.SpecFile:
    privacy = spec.privacy
    return schemas.SpecFile(
        name=spec.name, model=spec.model.name, parameters=spec.parameters, data=spec.data.kind,
        classes=[shown(one) for one in spec.data.classes], metric=spec.judging.metric, lanes_per_update=spec.lanes,
        lane_bits=spec.update_layout.lane_bits, update_blobs=spec.update_blobs, statistics_blobs=spec.statistics_blobs,
        privacy=None if privacy is None else schemas.Privacy(
            epsilon=privacy.epsilon, delta=privacy.delta, max_grad_norm=privacy.max_grad_norm
        ),
    )  # fmt: skip


def terms_view(params: dict[str, Any]) -> Any:
    return Terms(**{key: str(int(params[key])) if key in AMOUNTS else params[key] for key in _TERMS})


def one_task(at: At, task: int) -> schemas.Task:
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

    return schemas.Task(
        **_summary(row),
        **_stop(at, row),
        terms=terms_view(row[0].params | {"pool": pool}),
        spec=spec_view(spec) if spec else None,
        spec_fault=fault,
        money=schemas.Money(
            pool=str(pool), rewards=str(reward), bounties=str(bounty), refund=str(refund),
            left=str(0 if has_ended else unpaid), burnt=str(unpaid if has_ended else 0), slashed=str(slash),
        ),
        participants=[
            schemas.Member(
                account=one.account, role=name(Role(one.role)), position=one.position, weight=one.weight,
                joined_at=time, earned=str(sums[one.account, "reward"]), slashed=str(sums[one.account, "slash"]),
                bond=str(bond(one)),
            )
            for one, time in participants(at, task)
        ],
    )  # fmt: skip


def _stop(at: At, row: Any) -> dict[str, Any]:
    """As `consilium_chain.rounds.machine.last_round` has it, from the round in which the operator stopped the task."""
    task, phase, reached = row[0], row[2], row[3]
    found = select(EventRow.round).where(EventRow.task == task.task, EventRow.name == "TaskStopped")
    stopped, rounds = at.db.scalar(found), int(task.params["rounds"])
    last = rounds if stopped is None else min(max(stopped, 1), rounds)
    return {"stopping": stopped is not None, "last_round": reached if phase == Phase.ENDED else last}


def task_row(at: At, task: int) -> Any:
    """Raises Problem."""
    found, _ = _tasks(PhaseStart.task == task)
    row = at.db.execute(found.where(TaskRow.task == task)).first()
    if row is None:
        raise Problem("not-found", f"task {task} is not in the index: see /v1/tasks for those that are")
    return row


def participants(at: At, task: int) -> list[tuple[Participant, int]]:
    """With when they joined."""
    found = (
        select(Participant, Block.time)
        .join(Block, Block.number == Participant.block)
        .where(Participant.task == task)
        .order_by(Participant.role, Participant.position)
    )
    return [(row[0], row[1]) for row in at.db.execute(found)]


# Rounds


def list_rounds(at: At, task: int, asked: Asked) -> schemas.Page[schemas.RoundSummary]:
    """The latest first."""
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
    return schemas.Page(items=[schemas.RoundSummary(**found[number]) for number in cut.rows], next=cut.next)


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
    """All logs of a round, in order."""

    rows: list[tuple[EventRow, bytes, int]]  # with their block's hash and time

    def named(self, *wanted: str) -> list[EventRow]:
        return [row for row, _, _ in self.rows if row.name in wanted]

    def last(self, wanted: str) -> dict[str, Any] | None:
        found = self.named(wanted)
        return found[-1].values if found else None


def round_events(at: At, task: int, round_: int) -> RoundEvents:
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


def one_round(at: At, task: int, round_: int) -> schemas.Round:
    row = task_row(at, task)
    events, joined = round_events(at, task, round_), participants(at, task)
    cohorts = cohorts_of(at, task, round_, [one for one, _ in joined if one.role == Role.HOSPITAL])
    if not any(row.name == "PhaseStarted" and int(row.values["phase"]) != Phase.JOINING for row, _, _ in events.rows):
        raise Problem("not-found", f"round {round_} of task {task} has not begun: see /v1/tasks/{task}/rounds")
    summary = _round_summaries(at, row, [round_])[round_]
    positions = {(one.account, one.role): one.position for one, _ in joined}
    return schemas.Round(
        **summary,
        task=task,
        cohorts=_cohorts(events, cohorts, summary),
        commitments=[
            schemas.CommitmentView(
                hospital=str(one.account), position=positions.get((str(one.account), Role.HOSPITAL)),
                points=points_of(one.values), dealing=_hash_or_none(one.values["dealing"]),
                transaction=hexed(one.transaction), block=one.block,
            )
            for one in events.named("UpdateCommitted")
        ],
        committee=_committee(events, len(cohorts), summary, positions),
        payments=payment_views(payments_of_round(at, task, round_)),
        evidence=evidence_of(events),
    )  # fmt: skip


def evidence_of(events: RoundEvents) -> list[schemas.Evidence]:
    return [
        schemas.Evidence(
            name=row.name, time=time, block=row.block, block_hash=hexed(hash_), log_index=row.log_index,
            transaction=hexed(row.transaction),
        )
        for row, hash_, time in events.rows
    ]  # fmt: skip


def _cohorts(events: RoundEvents, cohorts: Sequence[int], summary: dict[str, Any]) -> list[schemas.CohortView]:
    survivors, medians = survivors_of(events), summary["medians"]
    is_over = summary["outcome"] == name(Outcome.SETTLED)
    found = []
    for number, cohort in enumerate(cohorts):
        blobs = blobs_of(events, number)
        found.append(
            schemas.CohortView(
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


def _fate(events: RoundEvents, cohort: int, blobs: Sequence[schemas.BlobHashes]) -> Any:
    for event, fate in (("CohortAccused", "accused"), ("CohortDropped", "dropped")):
        if any(int(one.values["cohort"]) == cohort for one in events.named(event)):
            return fate
    return "published" if any(blob.published for blob in blobs) else "open"


def survivors_of(events: RoundEvents) -> int:
    """Bit map of hospitals; 0 until it is fixed."""
    fixed = events.last("SurvivorsFixed")
    return int(fixed["survivors"]) if fixed else 0


def turned_of(events: RoundEvents, cohort: int) -> bool | None:
    return next(
        (bool(one.values["isTurned"]) for one in events.named("CohortOpened") if int(one.values["cohort"]) == cohort),
        None,
    )


def blobs_of(events: RoundEvents, cohort: int) -> list[schemas.BlobHashes]:
    hashes: dict[int, dict[str, str]] = defaultdict(dict)
    for event, key in (("CohortSummed", "expected"), ("CohortPublished", "published")):
        for one in events.named(event):
            if int(one.values["cohort"]) == cohort:
                hashes[int(one.values["blob"])][key] = one.values["versionedHash"]
    return [
        schemas.BlobHashes(blob=blob, expected=found.get("expected"), published=found.get("published"))
        for blob, found in sorted(hashes.items())
    ]


def points_of(values: dict[str, Any]) -> list[str]:
    text = str(values["points"]).removeprefix("0x")
    return ["0x" + text[i : i + 2 * POINT_BYTES] for i in range(0, len(text), 2 * POINT_BYTES)]


def _committee(
    events: RoundEvents, cohorts: int, summary: dict[str, Any], positions: dict[tuple[str, int], int]
) -> schemas.Committee:
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
            schemas.Ballot(
                voter=str(voter), position=positions.get((str(voter), Role.VOTER)), commitment=committed.get(voter),
                verdict=verdict,
                scores=[None if s == INVALID_SCORE else s for s in scores or []] if verdict == "scored" else None,
            )
        )  # fmt: skip
    is_over = summary["outcome"] != name(Outcome.PENDING)
    turned = [turned_of(events, cohort) or False for cohort in range(cohorts)]
    return schemas.Committee(
        seed=drawn["seed"] if drawn else None,
        seat_weight=str(int(drawn["seatWeight"])) if drawn else None,
        ballots=ballots,
        spread=spread(list(revealed.values()), turned) if is_over else [],
    )


def spread(ballots: Iterable[Sequence[int]], turned: Sequence[bool]) -> list[schemas.Spread]:
    """By cohort, of the scores of its sum as it was read genuinely; `ballots` as revealed, in millionths.

    Left out are ballots that say "does not match", and scores that say that a sum is no valid model.
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
            schemas.Spread(
                cohort=cohort, votes=len(scores), lowest=scores[0], lower_quartile=round(lower),
                median=round(median(scores)), upper_quartile=round(upper), highest=scores[-1],
            )
        )  # fmt: skip
    return found


def proof(at: At, task: int, round_: int) -> schemas.Proof:
    row = task_row(at, task)
    events = round_events(at, task, round_)
    hospitals = [one for one, _ in participants(at, task) if one.role == Role.HOSPITAL]
    cohorts = cohorts_of(at, task, round_, hospitals)
    if not events.named("UpdateCommitted"):
        raise Problem("not-found", f"nobody has committed to round {round_} of task {task} yet: wait")
    committed = {one.account: points_of(one.values) for one in events.named("UpdateCommitted")}
    canaries, params, survivors = events.last("CanariesSet"), row[0].params, survivors_of(events)
    deployment = at.service.deployment
    return schemas.Proof(
        chain_id=deployment.chain_id, contract=deployment.tasks, task=task, round=round_,
        spec_hash=hexed(row[0].spec_hash), digests=params["digests"],
        canaries=params["canaries"] and round_ != STATISTICS_ROUND,
        seed_commitment=canaries["seedCommitment"] if canaries else None,
        retreat=canaries["retreat"] if canaries else None,
        hospitals=[
            schemas.ProofMember(
                position=one.position, hospital=one.account,
                weight=1 if round_ == STATISTICS_ROUND else one.weight, points=committed.get(one.account),
            )
            for one in hospitals
        ],
        cohorts=[
            schemas.ProofCohort(
                cohort=number, members=list(members(cohort)), survivors=list(members(cohort & survivors)),
                is_turned=turned_of(events, number), blobs=blobs_of(events, number),
            )
            for number, cohort in enumerate(cohorts)
        ],
        evidence=evidence_of(events),
    )  # fmt: skip


def hexed(raw: bytes) -> str:
    return "0x" + raw.hex()


def _hash_or_none(text: str) -> str | None:
    return None if int(text, 16) == 0 else text
