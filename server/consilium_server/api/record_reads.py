"""A node's record: pure figures of its latest rounds that are over, and the reads that give them.

The reads are bounded: `ROUNDS` rounds, and the slashes and pool of one node. The answer is cached like all others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from consilium_chain.ledger.structs import (
    DOES_NOT_MATCH,
    INVALID_SCORE,
    STATISTICS_ROUND,
    Outcome,
    Phase,
    Role,
    SlashReason,
    VoidReason,
)
from consilium_chain.settlement.payouts import counts, lower_median
from sqlalchemy import and_, func, or_, select

from consilium_server.api.nodes import DAY
from consilium_server.api.reading import At, position_of
from consilium_server.api.record_schemas import Deadlines, DutyName, LastDuty, Period, Record, SlashSum
from consilium_server.api.schemas import name
from consilium_server.database.tables import (
    Block,
    Cohort,
    EventRow,
    OutcomeRow,
    Participant,
    Payment,
    PhaseStart,
    PoolRow,
    TaskRow,
)

ROUNDS = 200
YOUNG = 90  # days for which a period is a day
MONTH = 30  # days of a period afterwards
EVERY_HOSPITAL = (1 << 256) - 1
ACTS: Mapping[Role, tuple[str, ...]] = {
    Role.HOSPITAL: ("UpdateCommitted", "SharesPublished", "EvidenceSubmitted", "HospitalJoined"),
    Role.VOTER: ("ScoresCommitted", "ScoresRevealed", "VoterStoodDown", "VoterJoined"),
    # The task contract lets the aggregator alone do these. Their events do not name it.
    Role.AGGREGATOR: ("SurvivorsFixed", "CohortPublished", "CohortDisclosed", "CheatersNamed", "AggregatorJoined"),
}
LOST = ("CohortDropped", "CohortAccused")
DUTIES: Mapping[Role, tuple[DutyName, ...]] = {
    Role.HOSPITAL: ("commit", "upload"),
    Role.VOTER: ("reveal",),
    Role.AGGREGATOR: ("fix_survivors", "publish", "disclose"),
}


@dataclass
class Over:
    """A round that is over, of a task that the node is in at a position.

    `cohort`: members of the node's cohort, as a bit map; None if it sat out. `acts`: names of the node's events.
    `ballots`: as revealed, by voter. `flipped`: cohorts whose sums were sign-flipped. `lost`: cohorts that a dispute or
    missing unmasking left without a sum.
    """

    task: int
    round: int
    ended_at: int
    position: int
    outcome: int
    reason: int
    medians: Sequence[int]
    accepted: int
    phases: set[int] = field(default_factory=set)
    cohort: int | None = None
    cohort_number: int = 0
    acts: set[str] = field(default_factory=set)
    survivors: int | None = None
    flipped: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    ballots: dict[str, list[int]] = field(default_factory=dict)

    @property
    def is_settled(self) -> bool:
        """True for a training round that was judged."""
        return self.outcome == Outcome.SETTLED and self.round != STATISTICS_ROUND

    @property
    def has_uploaded(self) -> bool:
        """True if the aggregator has the node's upload."""
        return bool((self.survivors or 0) >> self.position & 1)

    @property
    def is_judged(self) -> bool:
        """True for a hospital whose update is in a sum that the committee judged."""
        return self.is_settled and self.has_uploaded and self.cohort_number not in self.lost


# Pure


def duties(role: Role, over: Over) -> list[tuple[DutyName, bool]]:
    """The node's duties of a round in order, each with True if it did it."""
    if role is Role.VOTER:
        is_due = Phase.REVEALING in over.phases and "ScoresCommitted" in over.acts
        return [("reveal", "ScoresRevealed" in over.acts)] if is_due else []
    if role is Role.AGGREGATOR:
        steps: tuple[tuple[Phase, DutyName, bool], ...] = (
            (Phase.UPLOADING, "fix_survivors", over.survivors is not None),
            (Phase.PUBLISHING, "publish", over.reason != VoidReason.NOT_PUBLISHED),
            (Phase.DISCLOSING, "disclose", over.reason != VoidReason.NOT_DISCLOSED),
        )
        return [(duty, made) for phase, duty, made in steps if phase in over.phases]
    if over.cohort is None or Phase.COMMITTING not in over.phases:
        return []
    has_committed = "UpdateCommitted" in over.acts
    # Survivors are only of cohorts that have a sum. In another, nobody's upload was needed.
    if has_committed and (over.survivors or 0) & over.cohort:
        return [("commit", True), ("upload", over.has_uploaded)]
    return [("commit", has_committed)]


def verdicts(role: Role, overs: Iterable[Over]) -> list[bool]:
    """True for each accepted round of a hospital or aggregator, False for each other one that was judged."""
    if role is Role.AGGREGATOR:
        return [over.outcome == Outcome.SETTLED for over in overs]
    if role is Role.VOTER:
        return []
    return [bool(over.accepted >> over.cohort_number & 1) for over in overs if over.is_judged]


def distances(voter: str, over: Over) -> list[int]:
    """Distances of a voter's scores from the medians of the sums, in millionths.

    It excludes scores that call a sum an invalid model, and cohorts without a sum, whose score and median are 0.
    """
    ballot = over.ballots.get(voter)
    if not over.is_settled or not ballot or ballot[0] == DOES_NOT_MATCH:
        return []
    pairs = [(ballot[_at(over, k)], median) for k, median in enumerate(over.medians) if _at(over, k) < len(ballot)]
    return [abs(own - median) for own, median in pairs if INVALID_SCORE not in (own, median) and (own or median)]


def decoys(voter: str, over: Over, floor: int, margin: int) -> list[bool]:
    """True for each pair of sum and decoy that tested the voter, and that it told apart (`Verdicts.sol`)."""
    ballot, cohorts = over.ballots.get(voter), len(over.medians)
    judging = [one for one in over.ballots.values() if one[0] != DOES_NOT_MATCH and len(one) == 2 * cohorts]
    if not over.is_settled or ballot not in judging or ballot is None:
        return []
    passed = []
    for k, median in enumerate(over.medians):
        decoy = _at(over, k, of_decoy=True)
        if counts(median, lower_median([one[decoy] for one in judging]), floor, margin):
            passed.append(ballot[_at(over, k)] > ballot[decoy])
    return passed


def _at(over: Over, cohort: int, of_decoy: bool = False) -> int:
    """Index of a cohort's sum, or of its decoy, in a ballot."""
    return cohort + (len(over.medians) if (cohort in over.flipped) != of_decoy else 0)


def _last_duty(role: Role, overs: Sequence[Over]) -> LastDuty | None:
    """`overs`: the latest first."""
    for over in overs:
        if due := duties(role, over):
            duty, made = next((one for one in due if not one[1]), due[-1])
            return LastDuty(duty=duty, task=over.task, round=over.round, ended_at=over.ended_at, made=made)
    return None


# Reads


def record_of(at: At, node: str, role: Role) -> Record:
    """The record of a node that the index has."""
    overs = _overs(at, node, role)
    due, made = Counter[str](), Counter[str]()
    for duty, was_made in (one for over in overs for one in duties(role, over)):
        due[duty] += 1
        made[duty] += was_made
    judged = verdicts(role, overs)
    summed = [over for over in overs if role is Role.HOSPITAL and over.is_judged]
    far = [one for over in overs for one in distances(node, over)]
    terms = _terms(at, overs) if role is Role.VOTER else {}
    passed = [one for over in overs if over.task in terms for one in decoys(node, over, *terms[over.task])]
    period, periods = _periods(at, node, role)
    return Record(
        rounds=len(overs),
        since=overs[-1].ended_at if overs else None,
        deadlines=[Deadlines(duty=duty, due=due[duty], made=made[duty]) for duty in DUTIES[role]],
        accepted=sum(judged),
        rejected=len(judged) - sum(judged),
        seats=sum("ScoresCommitted" in over.acts for over in overs),
        cohort_median=_median([over.medians[over.cohort_number] for over in summed]),
        all_median=_median([median for over in summed for median in over.medians]),
        distance=round(mean(far)) if far else None,
        decoys_passed=sum(passed),
        decoys_failed=len(passed) - sum(passed),
        slashes=_slashes(at, node, role),
        last_act=_last_act(at, node, role),
        last_duty=_last_duty(role, overs),
        period_seconds=period,
        periods=periods,
    )


def _median(values: Sequence[int]) -> int | None:
    return lower_median(values) if values else None


def _overs(at: At, node: str, role: Role) -> list[Over]:
    """The latest rounds that are over, the latest first, with all that happened in them and concerns the node."""
    mine = and_(Participant.task == OutcomeRow.task, Participant.account == node, Participant.role == role)
    latest = (
        select(
            OutcomeRow.task, OutcomeRow.round, Block.time.label("ended_at"), Participant.position, OutcomeRow.outcome,
            OutcomeRow.reason, OutcomeRow.medians, OutcomeRow.accepted,
        )
        .join(Participant, mine)
        .join(Block, Block.number == OutcomeRow.block)
        .order_by(OutcomeRow.block.desc(), OutcomeRow.log_index.desc())
        .limit(ROUNDS)
    )  # fmt: skip
    found = {(row.task, row.round): Over(**row._mapping) for row in at.db.execute(latest)}
    rounds = latest.subquery()

    def of_rounds(model: Any, *columns: Any) -> Any:
        same = and_(model.task == rounds.c.task, model.round == rounds.c.round)
        return select(rounds.c.task, rounds.c.round, *columns).join(model, same)

    for task, round_, phase in at.db.execute(of_rounds(PhaseStart, PhaseStart.phase)):
        found[task, round_].phases.add(phase)
    acted = of_rounds(EventRow, EventRow.name).where(EventRow.account == node, EventRow.name.in_(ACTS[role]))
    for task, round_, act in at.db.execute(acted):
        found[task, round_].acts.add(act)
    if role is Role.HOSPITAL:
        _add_cohorts(found, at.db.execute(of_rounds(Cohort, Cohort.item, Cohort.members)))
    told = ("CohortDisclosed", "ScoresRevealed") if role is Role.VOTER else ("SurvivorsFixed", *LOST)
    for task, round_, event, account, values in at.db.execute(
        of_rounds(EventRow, EventRow.name, EventRow.account, EventRow.values).where(EventRow.name.in_(told))
    ):
        _add_event(found[task, round_], event, account, values)
    return list(found.values())


def _add_cohorts(found: dict[tuple[int, int], Over], rows: Iterable[Any]) -> None:
    for task, round_, number, members in rows:
        over = found[task, round_]
        if members >> over.position & 1:
            over.cohort, over.cohort_number = members, number
    for over in found.values():
        if over.round == STATISTICS_ROUND:
            over.cohort = EVERY_HOSPITAL


def _add_event(over: Over, event: str, account: str | None, values: Mapping[str, Any]) -> None:
    if event == "SurvivorsFixed":
        over.survivors = int(values["survivors"])
    elif event == "ScoresRevealed" and account is not None and values["scores"]:
        over.ballots[account] = [int(score) for score in values["scores"]]
    elif event == "CohortDisclosed" and values["isFlipped"]:
        over.flipped.add(int(values["cohort"]))
    elif event in LOST:
        over.lost.add(int(values["cohort"]))


def _terms(at: At, overs: Sequence[Over]) -> dict[int, tuple[int, int]]:
    """Acceptance floor and decoys' margin of the tasks with decoys."""
    query = select(TaskRow.task, TaskRow.params).where(TaskRow.task.in_({over.task for over in overs}))
    return {
        task: (int(params["accept_floor"]), int(params["decoy_margin"]))
        for task, params in at.db.execute(query)
        if params["decoys"]
    }


def _slashes(at: At, node: str, role: Role) -> list[SlashSum]:
    query = select(Payment.reason, Payment.amount)
    query = query.where(Payment.account == node, Payment.role == role, Payment.kind == "slash")
    amounts: dict[str, list[int]] = defaultdict(list)
    for reason, amount in at.db.execute(query):
        amounts[name(SlashReason(reason or 0))].append(amount)
    return [SlashSum(reason=key, count=len(ones), amount=str(sum(ones))) for key, ones in sorted(amounts.items())]


def _last_act(at: At, node: str, role: Role) -> int | None:
    by = EventRow.account == node
    if role is Role.AGGREGATOR:
        tasks = select(Participant.task).where(Participant.account == node, Participant.role == role)
        by = or_(by, EventRow.task.in_(tasks))
    query = select(Block.time).join(EventRow, EventRow.block == Block.number).where(by, EventRow.name.in_(ACTS[role]))
    return at.db.scalar(query.order_by(EventRow.block.desc()).limit(1))


def _periods(at: At, node: str, role: Role) -> tuple[int, list[Period]]:
    """Length of a period in seconds, and the node's periods."""
    mine = (PoolRow.node == node, PoolRow.role == role)
    joined = select(func.min(Block.time)).join(PoolRow, PoolRow.block == Block.number).where(*mine)
    began = (at.db.scalar(joined) or at.head.time) // DAY * DAY
    length = DAY if at.head.time - began <= YOUNG * DAY else MONTH * DAY
    number = (Block.time - began) // length
    last = select(func.max(PoolRow.block)).join(Block, Block.number == PoolRow.block).where(*mine).group_by(number)
    rows = select(PoolRow, Block.time).join(Block, Block.number == PoolRow.block)
    rows = rows.where(*mine, PoolRow.block.in_(last)).order_by(*position_of(PoolRow))
    ends = {(time - began) // length: pool for pool, time in at.db.execute(rows)}
    periods, assets, rewarded, burnt = [], 0, 0, 0
    for n in range((at.head.time - began) // length + 1):
        pool = ends.get(n)
        before = (rewarded, burnt)
        if pool is not None:
            assets, rewarded, burnt = pool.assets, pool.rewarded, pool.burnt
        period = Period(
            since=began + n * length, assets=str(assets), rewarded=str(rewarded - before[0]),
            burnt=str(burnt - before[1]),
        )  # fmt: skip
        periods.append(period)
    return length, periods
