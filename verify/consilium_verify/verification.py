"""Verifies a round or a whole task from chain and artifact store, as far as the record allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import RecordIncomplete, SettlementInvalid, SpecInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.record import ShownBlinders
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome, members
from consilium_chain.rounds.disputes import find_cheaters
from consilium_chain.rounds.sums import NegatedDelta
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.errors import ClientError
from consilium_client.replay import PublicRecord
from consilium_client.task import JoinedTask
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing
from consilium_zk.basis import Shared
from consilium_zk.curve import Commitment
from consilium_zk.errors import EvidenceMalformed, ZkError

from consilium_verify import checks
from consilium_verify.checks import Lanes, Published
from consilium_verify.money_checks import Books, accusation, cheaters_follow, could_testify, settlement_follows
from consilium_verify.report import (
    Check,
    Derived,
    Name,
    Report,
    Result,
    Subject,
    TaskReport,
    derived,
    fails,
    holds,
    unchecked,
)

# Faults of the record itself. A chain that does not answer is not among them.
RECORD_FAULTS = (ArtifactMissing, ArtifactCorrupt, RecordIncomplete, ClientError, ZkError)


def reader(rpc: str, address_book: Path) -> Ledger:
    """The contracts' client, without an account. Raises DeploymentInvalid, ChainUnreachable."""
    return Ledger(Connection(rpc), Deployment.read(address_book))


def last_settled(ledger: Ledger, task: int) -> int:
    """Raises RecordIncomplete if no round is settled."""
    for round_ in range(ledger.tasks.state(task).round, STATISTICS_ROUND - 1, -1):
        if ledger.tasks.round_state(task, round_).outcome is Outcome.SETTLED:
            return round_
    raise RecordIncomplete(f"no round of task {task} is settled yet: wait until one is")


def rounds_with_outcome(ledger: Ledger, task: int) -> list[int]:
    """Numbers of the rounds that are settled or void, ascending."""
    latest = ledger.tasks.state(task).round
    rounds = range(STATISTICS_ROUND, latest + 1)
    return [round_ for round_ in rounds if ledger.tasks.round_state(task, round_).outcome is not Outcome.PENDING]


def verify_round(
    ledger: Ledger, store: ArtifactStore, task: int, round_: int | None = None, record: PublicRecord | None = None
) -> Report:
    """Checks one round, by default the last settled one. `record`: the task's; it caches derived values.

    Raises RecordIncomplete for a round without an outcome, Refused for an unknown task, ChainUnreachable.
    """
    found = _Verification(ledger, store, task, last_settled(ledger, task) if round_ is None else round_, record)
    found.run()
    return Report(subject=found.subject, checks=tuple(found.checks), derived=tuple(found.derived))


def verify_task(
    ledger: Ledger,
    store: ArtifactStore,
    task: int,
    record: PublicRecord | None = None,
    on_report: Callable[[Report], None] = lambda report: None,
) -> TaskReport:
    """Checks every round that has an outcome, in order. `on_report` is called with each report.

    Raises Refused for an unknown task, ChainUnreachable.
    """
    reports = []
    for round_ in rounds_with_outcome(ledger, task):
        reports.append(verify_round(ledger, store, task, round_, record))
        on_report(reports[-1])
    return TaskReport(task=task, rounds=tuple(reports))


def published(ledger: Ledger, task: int, round_: int) -> list[Published]:
    """The cohorts of a round with a published sum."""
    tasks = ledger.tasks
    params, state, hospitals = tasks.params(task), tasks.round_state(task, round_), tasks.hospitals(task)
    statistics = round_ == STATISTICS_ROUND
    count = params.statistics_blobs if statistics else params.update_blobs
    found = []
    for cohort in members(state.viable_cohorts):
        present = tasks.cohort_members(task, round_, cohort) & state.survivors
        chosen = [hospitals[index] for index in members(present)]
        weights = {hospital.node: 1 if statistics else hospital.weight for hospital in chosen}
        hashes = tasks.expected_blob_hashes(task, round_, cohort, count)
        found.append(Published(cohort, weights, hashes, bool(state.flipped_cohorts >> cohort & 1)))
    return found


class _Verification:
    def __init__(
        self, ledger: Ledger, store: ArtifactStore, task: int, round_: int, record: PublicRecord | None
    ) -> None:
        self._ledger, self._store, self._task, self._round, self._record = ledger, store, task, round_, record
        self._params = ledger.tasks.params(task)
        self._state = ledger.tasks.round_state(task, round_)
        if self._state.outcome is Outcome.PENDING:
            raise RecordIncomplete(f"round {round_} of task {task} has not ended: wait, or name an earlier round")
        self._hospitals = ledger.tasks.hospitals(task)
        self._has_decoys = self._params.has_decoys(round_)
        self.checks: list[Check] = []
        self.derived: list[Derived] = []

    @property
    def subject(self) -> Subject:
        state, connection = self._state, self._ledger.connection
        reason = state.void_reason.name.lower().replace("_", " ")
        return Subject(
            task=self._task,
            round=self._round,
            rounds=self._params.rounds,
            outcome="settled" if state.outcome is Outcome.SETTLED else f"void ({reason})",
            chain_id=connection.chain_id,
            contract=self._ledger.deployment.tasks,
            node=connection.shown_url,
            survivors=sum(self._survivors(cohort).bit_count() for cohort in members(state.viable_cohorts)),
        )

    def run(self) -> None:
        spec = self._task_file()
        record = None
        if spec is not None:
            joined = JoinedTask(self._task, spec, self._params)
            record = self._record or PublicRecord(self._ledger, self._store, joined)
        is_settled = self._state.outcome is Outcome.SETTLED
        if is_settled and self._state.viable_cohorts:
            self._published(spec, record)
        else:
            why = "no cohort of this round has a sum" if is_settled else "a void round does not enter the model"
            skipped = [Name.SUMS, Name.BLOBS, Name.LANES]
            for name in [Name.DECOYS, *skipped] if self._has_decoys else skipped:
                self.checks.append(unchecked(name, why))
        if self._state.accused:
            self.checks.append(self._cheaters())
        self.checks += self._bases(record)
        self.checks.append(self._model(record))
        self.checks.append(self._settlement())

    # The task

    def _task_file(self) -> TaskSpec | None:
        """None if the file is missing or differs."""
        digest = self._params.spec_hash
        try:
            spec = parse_task_spec(self._store.get_file(digest))
        except (ArtifactMissing, ArtifactCorrupt, SpecInvalid) as error:
            self.checks.append(fails(Name.TASK_FILE, str(error)))
            return None
        check = checks.terms_match(task_params(spec, digest, self._params.aggregator), self._params)
        self.checks.append(check)
        return spec if check.result is Result.HOLDS else None

    # Published sums

    def _published(self, spec: TaskSpec | None, record: PublicRecord | None) -> None:
        cohorts = published(self._ledger, self._task, self._round)
        shown: list[ShownBlinders] = []
        negated_delta = None
        if self._has_decoys:
            shown = self._ledger.record.shown_blinders(self._task, self._round)
            check, negated_delta = self._decoys(record, shown, cohorts)
            self.checks.append(check)
        self.checks.append(self._sums(negated_delta, shown, cohorts))
        self._blobs(spec, negated_delta, cohorts)

    def _survivors(self, cohort: int) -> int:
        return self._ledger.tasks.cohort_members(self._task, self._round, cohort) & self._state.survivors

    def _decoys(
        self, record: PublicRecord | None, shown: Sequence[ShownBlinders], cohorts: Sequence[Published]
    ) -> tuple[Check, NegatedDelta | None]:
        if record is None:
            return unchecked(Name.DECOYS, "it needs the task file"), None
        try:
            negated_delta = record.sums.negated_delta(self._round)
        except RECORD_FAULTS as error:
            return fails(Name.DECOYS, f"the negated delta cannot be derived from earlier rounds: {error}"), None
        claimed = self._ledger.record.decoys_set(self._task, self._round)
        if claimed is None:
            return fails(Name.DECOYS, "no DecoysSet event before the publication"), negated_delta
        check = checks.decoys_follow(self._task, self._round, claimed, negated_delta.digest, shown, cohorts)
        return check, negated_delta

    def _sums(
        self, negated_delta: NegatedDelta | None, shown: Sequence[ShownBlinders], cohorts: Sequence[Published]
    ) -> Check:
        if self._has_decoys and negated_delta is None:
            return unchecked(Name.SUMS, "it needs the negated delta")
        try:
            points = self._points()
            if others := self._uncommitted(points):
                return fails(Name.SUMS, [f"{who} did not commit to the points that PointsShown has" for who in others])
            if negated_delta is None:
                return checks.plain_sums(points, cohorts)
            return checks.decoy_sums(points, cohorts, negated_delta, shown)
        except ZkError as error:
            return fails(Name.SUMS, f"an event has an invalid commitment: {error}")

    def _points(self) -> dict[str, list[Commitment]]:
        """The points that were shown, by survivor, in the order of blobs."""
        shown = self._ledger.record.shown_points(self._task, self._round)
        return {who: [own[blob] for blob in sorted(own)] for who, own in shown.items()}

    def _uncommitted(self, points: Mapping[str, Sequence[Commitment]]) -> list[str]:
        """Hospitals that did not commit to the hashes of these points."""
        record, messages = self._ledger.record, self._ledger.messages
        hashes = record.point_hashes(self._task, self._round)
        return [
            who
            for who, own in points.items()
            if messages.point_hashes(self._task, self._round, who, own) != hashes.get(who)
        ]

    def _blobs(self, spec: TaskSpec | None, negated_delta: NegatedDelta | None, cohorts: Sequence[Published]) -> None:
        faults, lanes = [], self._lanes(spec, negated_delta)
        read = {}
        for one in cohorts:
            try:
                blobs = self._store.get_blobs(one.hashes)
            except (ArtifactMissing, ArtifactCorrupt) as error:
                faults.append(f"cohort {one.cohort}: {error}")
                continue
            if lanes is not None:
                read[one.cohort] = lanes.fault(one, blobs)
        count = sum(len(one.hashes) for one in cohorts)
        opened = holds(Name.BLOBS, f"{count} of {count} are in the store and match the commitments on chain")
        self.checks.append(fails(Name.BLOBS, faults) if faults else opened)
        if faults:
            self.checks.append(unchecked(Name.LANES, "it needs the blobs"))
        elif lanes is None:
            missing = "the task file" if spec is None else "the negated delta"
            self.checks.append(unchecked(Name.LANES, f"it needs {missing}"))
        else:
            self.checks.append(checks.lanes_in_range(read, self._state.accepted_cohorts))

    def _lanes(self, spec: TaskSpec | None, negated_delta: NegatedDelta | None) -> Lanes | None:
        if spec is None or (self._has_decoys and negated_delta is None):
            return None
        if self._round == STATISTICS_ROUND:
            return Lanes(spec.statistics_layout, spec.statistics_values, spec.statistics_layout.bits)
        return Lanes(
            spec.update_layout, spec.lanes, spec.update.bits, None if negated_delta is None else negated_delta.lanes
        )

    # Accused cohorts

    def _cheaters(self) -> Check:
        if not could_testify(self._state):
            return unchecked(Name.CHEATERS, "the round ended before the accused could submit evidence")
        common = self._params, self._round, self._state, self._books
        try:
            found = find_cheaters(self._ledger, self._store, self._task, self._round, self._state)
        except EvidenceMalformed as error:
            return cheaters_follow(*common, {}, str(error))
        except RECORD_FAULTS as error:
            left = accusation(self._state) if self._state.named else "if a hospital broke a sum"
            return fails(Name.CHEATERS, f"the cheaters cannot be recomputed here: {error}\nunproven: {left}")
        return cheaters_follow(*common, found)

    # Model and settlement

    def _bases(self, record: PublicRecord | None) -> list[Check]:
        """Compares the base with those that hospitals state; no check if they state none."""
        stated = self._ledger.record.stated_bases(self._task, self._round)
        if not stated:
            return []
        if record is None:
            return [unchecked(Name.BASES, "it needs the task file")]
        try:
            return [checks.bases_agree(record.base_digest(self._round), stated)]
        except RECORD_FAULTS as error:
            return [unchecked(Name.BASES, f"the base cannot be derived: {error}")]

    def _model(self, record: PublicRecord | None) -> Check:
        if record is None:
            return unchecked(Name.MODEL, "it needs the task file")
        following = self._round + 1
        if self._params.shards > 1 and not self._ledger.tasks.have_shards_reached(self._task, following):
            return unchecked(Name.MODEL, "it needs this round of all shards, and some are still in it; try again later")
        is_last = self._round == self._params.rounds
        what = "final model" if is_last else f"base of round {following}"
        try:
            model = record.base(following)
            found = [derived(what, model)]
            if isinstance(record.basis, Shared):
                found.append(derived(f"{what} without local tensors", model[record.basis.is_shared]))
            if self._round == STATISTICS_ROUND and self._state.outcome is Outcome.SETTLED:
                found.insert(0, derived("statistics", record.statistics()))
        except RECORD_FAULTS as error:
            if any(check.name is Name.BLOBS and check.result is Result.FAILS for check in self.checks):
                return unchecked(Name.MODEL, "it needs the blobs")
            return fails(Name.MODEL, f"it cannot be derived: {error}")
        self.derived += found
        return holds(Name.MODEL, f"{' and '.join(one.what for one in found)} derived again; the digest is below")

    def _settlement(self) -> Check:
        try:
            return settlement_follows(self._params, self._round, self._state, self._books)
        except SettlementInvalid as error:
            return fails(Name.SETTLEMENT, f"no round can leave this record: {error}")

    @cached_property
    def _books(self) -> Books:
        ledger, task = self._ledger, self._task
        return Books(
            hospitals=self._hospitals,
            voters=ledger.tasks.voters(task),
            cohorts=[ledger.tasks.cohort_members(task, self._round, cohort) for cohort in range(self._state.cohorts)],
            rewarded=ledger.logs.of_task("Rewarded", task),
            slashed=ledger.logs.of_task("Slashed", task),
            bounties=ledger.logs.of_task("BountyPaid", task),
            settled=ledger.logs.of_task("RoundSettled", task),
            revealed=ledger.logs.of_task("ScoresRevealed", task),
        )
