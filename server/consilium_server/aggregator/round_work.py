"""State of one round, as this process of the aggregator knows it. Each round has a new object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from consilium_chain.ledger.structs import Phase, RoundState, TaskState, members
from consilium_chain.rounds.machine import Step
from consilium_chain.rounds.secret_shares import masked_cohort, read_dealings
from consilium_chain.rounds.signed_updates import SignedUpdate
from consilium_core.logs import emit
from consilium_zk.errors import SharesInvalid
from consilium_zk.secret_shares import Dealing
from consilium_zk.secure_aggregation import MaskedCohort

from consilium_server.aggregator.collection import Carrier, Collection
from consilium_server.aggregator.committer import Committer
from consilium_server.aggregator.disputes import Statements
from consilium_server.aggregator.reply_store import ReplyStore
from consilium_server.aggregator.task import AggregatedTask
from consilium_server.aggregator.unmasking import CohortAnswers, cohort_answers
from consilium_server.aggregator.uploads import Upload

KEPT = 2  # the present round, and the next, which is asked ahead, or the last, which a reorganisation may bring back


@dataclass
class Known:
    """Facts that follow from the chain's word on a round's hospitals, read once. Cohorts by their members' bit map.

    `relayable`: signed updates with sound secret shares, which are stored; `unsound`: hospitals without them.
    `maskings` and `uploaders` belong to one state of the commitments, a bit map that stands first. `answers`: by
    cohort's number, once survivors are fixed.
    """

    relayable: dict[int, SignedUpdate] = field(default_factory=dict)
    unsound: set[int] = field(default_factory=set)
    masked: dict[int, MaskedCohort] = field(default_factory=dict)
    maskings: tuple[int, dict[int, dict[int, Dealing]]] | None = None
    uploaders: tuple[int, int] | None = None
    statements: Statements | None = None
    answers: dict[int, CohortAnswers] | None = None


class RoundWork:
    """Hospitals' parts of a round, what follows from them, and the steps that were taken.

    `survivors`: a bit map, if this process fixed them. `refused`: the step that the contract refused for good.
    `are_secrets_lost`: the secrets that disclose its decoys are not on disk.
    """

    def __init__(self, task: AggregatedTask, number: int) -> None:
        self._task, self.number = task, number
        self.collection: Collection | None = None
        self.committer: Committer | None = None
        self.known = Known()
        self.survivors: int | None = None
        self.refused: Step | None = None
        self.are_secrets_lost = False

    def connect(self, grid: Carrier, nodes: dict[int, int]) -> Collection:
        """Prepares to ask hospitals over Flower, with the replies on disk. `nodes`: Flower node ids by index."""
        if self.collection is None:
            task, addresses = self._task, self._task.addresses()
            contract = bytes.fromhex(task.ledger.deployment.tasks.removeprefix("0x"))
            self.collection = Collection(
                grid, nodes, addresses, contract, task.number, self.number, task.blob_count(self.number),
                task.params.masked, ReplyStore(task.replies_folder, self.number),
            )  # fmt: skip
            self.committer = Committer(task.ledger, task.number, self.number, addresses)
        return self.collection

    @property
    def arrived(self) -> int:
        """Bit map of the hospitals that uploaded."""
        return 0 if self.collection is None else self.collection.arrived

    @property
    def finished(self) -> int:
        """Bit map of the hospitals that owe no reply any more."""
        return 0 if self.collection is None else self.collection.finished

    @property
    def uploads(self) -> Mapping[int, Upload]:
        """Uploads so far, by hospital."""
        return {} if self.collection is None else self.collection.uploads

    def cohorts(self, round_state: RoundState) -> list[int]:
        """Bit maps of hospitals, by cohort."""
        return self._task.cohorts(self.number, round_state)

    def relayable(self, collection: Collection, round_state: RoundState) -> dict[int, SignedUpdate]:
        """Signed updates to be relayed. In a masked task each has sound secret shares, stored before it is named."""
        known = self.known
        new = collection.signed.keys() - known.relayable.keys() - known.unsound
        cohorts = self.cohorts(round_state) if new else []
        for index in new:
            signed = collection.signed[index]
            try:
                self.store_dealing(index, signed.dealing, cohorts)
            except SharesInvalid as error:
                emit("dealing-refused", round=self.number, hospital=index, error=str(error))
                known.unsound.add(index)
            else:
                known.relayable[index] = signed.update
        return known.relayable

    def store_dealing(self, index: int, dealing: bytes, cohorts: Sequence[int]) -> None:
        """Stores a hospital's secret shares if they are sound. Raises DealingInvalid."""
        cohort = next((c for c in cohorts if c >> index & 1), None)
        if self._task.params.masked and cohort is not None:
            self.masked_cohort(cohort).parse(index, dealing)
            self._task.store.put_file(dealing)
        elif dealing:
            raise SharesInvalid("DealingInvalid", reason="nothing is to be dealt here")

    def masked_cohort(self, cohort: int) -> MaskedCohort:
        """A cohort, by its members' bit map; read from the chain once, for its keys do not change any more."""
        if cohort not in self.known.masked:
            self.known.masked[cohort] = masked_cohort(self._task.ledger, self._task.number, self.number, cohort)
        return self.known.masked[cohort]

    def least(self, cohort: int) -> int:
        """Fewest survivors with which a masked cohort, by its members' bit map, has a sum."""
        return max(self._task.params.min_cohort_size, self.masked_cohort(cohort).least)

    def masking(self, cohort: int, committed: int) -> dict[int, Dealing]:
        """Secret shares of those in a cohort, by its members' bit map, who committed with sound ones."""
        if self.known.maskings is None or self.known.maskings[0] != committed:
            self.known.maskings = committed, {}
        found = self.known.maskings[1]
        if cohort not in found:
            task, masked = self._task, self.masked_cohort(cohort)
            found[cohort] = read_dealings(task.ledger, task.store, task.number, self.number, masked)
        return found[cohort]

    @property
    def statements(self) -> Statements:
        """Statements of the round's hospitals, read once."""
        if self.known.statements is None:
            self.known.statements = Statements(self._task.ledger, self._task.number, self.number)
        return self.known.statements

    def sound_statements(self, cohort: int, committed: int) -> set[int]:
        """Hospitals of a cohort, by its members' bit map, that uploaded with a sound statement."""
        return self.statements.sound(self.masked_cohort(cohort), self.masking(cohort, committed), self.uploads)

    def answers(self, round_state: RoundState) -> dict[int, CohortAnswers]:
        """Survivors' answers, by number of viable cohort."""
        if self.known.answers is None:
            task, cohorts = self._task, self.cohorts(round_state)
            self.known.answers = {
                c: cohort_answers(task.ledger, task.store, task.number, self.number, cohorts[c], round_state)
                for c in members(round_state.viable_cohorts)
            }
        return self.known.answers

    def is_unmasked(self, state: TaskState, round_state: RoundState) -> bool:
        """True once every cohort's masks are known, or no answer is to be waited for."""
        if not self._task.params.masked or state.phase is not Phase.PUBLISHING or self.collection is None:
            return True
        answers = self.answers(round_state)
        for cohort in answers.values():
            cohort.take(self.collection.answers)
        return all(cohort.is_over(self.collection.finished) for cohort in answers.values())


class Rounds:
    """The rounds of one task that are worked on, by number."""

    def __init__(self, task: AggregatedTask) -> None:
        self._task = task
        self._work: dict[int, RoundWork] = {}
        self.asked: int | None = None  # the round whose hospitals were asked last

    def of(self, number: int) -> RoundWork:
        """The round of this number, begun if it is not there yet."""
        if number not in self._work:
            self._work[number] = RoundWork(self._task, number)
            for old in sorted(self._work, key=lambda known: abs(known - number))[KEPT:]:
                del self._work[old]
        return self._work[number]

    def ask(self, number: int) -> RoundWork:
        """The round whose hospitals are asked from now on. All that a reorganisation may have changed is read anew."""
        work = self.of(number)
        if self.asked != number:
            self.asked, work.known = number, Known()
        return work

    def disconnect(self) -> None:
        """Has hospitals asked by another connection, for everything."""
        for work in self._work.values():
            work.collection = None
        self.asked = None

    def forget(self) -> None:
        """Forgets every round: nothing that goes by hospitals' indices holds any more."""
        self._work.clear()
        self.asked = None
