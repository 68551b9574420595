"""State of one round in this process of the aggregator, and the commitments that it relays."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from consilium_chain.errors import Refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, RoundState, TaskState, members
from consilium_chain.rounds.machine import Step
from consilium_chain.rounds.secret_shares import masked_cohort, read_share_bundles
from consilium_chain.rounds.signed_updates import SignedUpdate, agreed_base
from consilium_core.logs import emit
from consilium_core.tracing import span
from consilium_zk.errors import SharesInvalid
from consilium_zk.secret_shares import ShareBundle
from consilium_zk.secure_aggregation import MaskedCohort

from consilium_server.aggregator.collection import Carrier, Collection
from consilium_server.aggregator.disputes import Statements
from consilium_server.aggregator.reply_store import ReplyStore
from consilium_server.aggregator.task import AggregatedTask
from consilium_server.aggregator.unmasking import CohortAnswers, cohort_answers
from consilium_server.aggregator.uploads import Upload

KEPT = 2  # the present round, and the next (requested early) or the last (a reorganisation may bring it back)
# Seconds that a signed update waits for others. In this time similar hospitals end their training. It is short compared
# with the window to commit, after half of which a hospital pays for its own transaction.
GATHER = 1.0


def due(waiting: int, missing: int, waited: float) -> bool:
    """True if it is time to commit: all updates that the chain lacks are here, or the first has waited long enough.

    `waiting` is a bit map within `missing`; `waited` is in seconds.
    """
    return waiting != 0 and (waiting == missing or waited >= GATHER)


class Committer:
    """Brings one round's signed updates onto the chain. `addresses`: hospitals' accounts by index."""

    def __init__(self, ledger: Ledger, task: int, round_: int, addresses: Sequence[str]) -> None:
        self._ledger, self._task, self._round, self._addresses = ledger, task, round_, addresses
        self._wrong = 0
        self._since: float | None = None  # arrival of the first update that waits
        self._over = False

    def commit_if_due(
        self, updates: Mapping[int, SignedUpdate], round_state: RoundState, silent: int, cohorts: Sequence[int]
    ) -> None:
        """Commits the updates if it is time. It does not wait for the `silent` hospitals (a bit map) without update.

        cohorts: bit maps of their members. It sends a commitment again if a reorganisation removed its block.
        """
        self._refuse_other_bases(updates, round_state)
        signed = sum(1 << index for index in updates)
        missing = round_state.members & ~round_state.committed & ~self._wrong & (signed | ~silent)
        waiting = missing & signed
        now = time.monotonic()
        self._since = (self._since or now) if waiting else None
        if not self._over and due(waiting, missing, now - (self._since or now)):
            self._commit(updates, waiting, cohorts)
            self._since = None

    def _refuse_other_bases(self, updates: Mapping[int, SignedUpdate], round_state: RoundState) -> None:
        """Leaves out hospitals that state another base than most of the round. Their updates would move the sum by the
        difference of the two models. The aggregator derives no model: it knows the base by the hospitals' word.
        """
        agreed = agreed_base((update.base for update in updates.values()), round_state.members.bit_count())
        for index, update in updates.items():
            if agreed not in (None, update.base) and not (self._wrong | round_state.committed) >> index & 1:
                self._wrong |= 1 << index
                emit("update-refused", round=self._round, hospital=index, error="BaseDiffers", base=update.base.hex())

    def _commit(self, updates: Mapping[int, SignedUpdate], waiting: int, cohorts: Sequence[int]) -> None:
        """Tries the batch without cost, and leaves out the hospital that a refusal names."""
        while waiting:
            batch = [
                (number, updates[index]) for number, cohort in enumerate(cohorts) for index in members(cohort & waiting)
            ]
            try:
                with span("relay commitments", task=self._task, round=self._round, hospitals=len(batch)):
                    receipts = self._ledger.aggregator.commit_updates(self._task, self._round, batch)
            except Refused as error:
                if error.values.get("hospital") not in self._addresses:
                    # Another account completed the round (a reorganisation may undo that), or the time is over.
                    if error.name != "WrongPhase":
                        self._over = True
                        emit("refused", call=error.call, error=error.name, round=self._round)
                    return
                wrong = self._addresses.index(error.values["hospital"])
                emit("update-refused", round=self._round, hospital=wrong, error=error.name)
                self._wrong |= 1 << wrong
                now = self._ledger.tasks.round_state(self._task, self._round)  # after a batch before this one
                waiting &= ~self._wrong & ~now.committed
            else:
                emit(
                    "relayed", round=self._round, hospitals=waiting.bit_count(), transactions=len(receipts),
                    gas=sum(receipt.gas_used for receipt in receipts),
                )  # fmt: skip
                return


@dataclass
class Known:
    """Facts about a round's hospitals that are read from the chain once. Cohorts by their members' bit map.

    `relayable`: signed updates whose secret shares are valid and stored; `unsound`: hospitals without them.
    `maskings`, `uploaders` and `point_hashes` start with the bit map of commitments that they belong to. `others`:
    hospitals whose upload has other points than those that they committed to. `answers`: by cohort's number, once
    survivors are fixed.
    """

    relayable: dict[int, SignedUpdate] = field(default_factory=dict)
    unsound: set[int] = field(default_factory=set)
    masked: dict[int, MaskedCohort] = field(default_factory=dict)
    maskings: tuple[int, dict[int, dict[int, ShareBundle]]] | None = None
    uploaders: tuple[int, int] | None = None
    point_hashes: tuple[int, dict[int, list[bytes]]] | None = None
    others: set[int] = field(default_factory=set)
    statements: Statements | None = None
    answers: dict[int, CohortAnswers] | None = None


class RoundWork:
    """Hospitals' parts of a round, their results, and the steps taken. Each round has a new object.

    `survivors`: a bit map, if this process fixed them. `refused`: the step that the contract finally refused.
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

    def connect(self, grid: Carrier, nodes: dict[int, int], addresses: Sequence[str]) -> Collection:
        """Prepares requests to hospitals over Flower, with the replies on disk. `nodes`: Flower node ids by index.
        `addresses`: accounts by index, as when the nodes were registered: while a reorganisation is under way, the
        chain may list fewer.
        """
        if self.collection is None:
            task = self._task
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

    def point_hashes(self, committed: int) -> Mapping[int, Sequence[bytes]]:
        """The hashes of points of the hospitals that committed (a bit map), in the order of their commitments."""
        known = self.known
        if known.point_hashes is None or known.point_hashes[0] != committed:
            known.point_hashes = committed, self._task.point_hashes(self.number)
            known.others.clear()
        return known.point_hashes[1]

    def uploads(self, committed: int) -> dict[int, Upload]:
        """Uploads so far of the hospitals that committed (a bit map), without those with other points."""
        found = {}
        for index, upload in ({} if self.collection is None else self.collection.uploads).items():
            addresses = self._task.addresses()
            if not committed >> index & 1 or index in self.known.others or index >= len(addresses):
                continue
            messages = self._task.ledger.messages
            shown = messages.point_hashes(self._task.number, self.number, addresses[index], upload.points)
            if shown == self.point_hashes(committed).get(index):
                found[index] = upload
            else:
                self.known.others.add(index)
                emit("upload-refused", round=self.number, hospital=index, error="OtherPoints")
        return found

    def cohorts(self, round_state: RoundState) -> list[int]:
        """Bit maps of hospitals, by cohort."""
        return self._task.cohorts(self.number, round_state)

    def relayable(self, collection: Collection, round_state: RoundState) -> dict[int, SignedUpdate]:
        """Signed updates to be relayed. In a masked task their secret shares are valid, and stored first."""
        known = self.known
        new = collection.signed.keys() - known.relayable.keys() - known.unsound
        cohorts = self.cohorts(round_state) if new else []
        for index in new:
            signed = collection.signed[index]
            try:
                self.store_share_bundle(index, signed.share_bundle, cohorts)
            except SharesInvalid as error:
                emit("share-bundle-refused", round=self.number, hospital=index, error=str(error))
                known.unsound.add(index)
            else:
                known.relayable[index] = signed.update
        return known.relayable

    def store_share_bundle(self, index: int, share_bundle: bytes, cohorts: Sequence[int]) -> None:
        """Stores a hospital's secret shares if they are valid. Raises SharesInvalid (ShareBundleInvalid)."""
        cohort = next((c for c in cohorts if c >> index & 1), None)
        if self._task.params.masked and cohort is not None:
            self.masked_cohort(cohort).parse(index, share_bundle)
            self._task.store.put_file(share_bundle)
        elif share_bundle:
            raise SharesInvalid("ShareBundleInvalid", reason="this round has no secret shares")

    def masked_cohort(self, cohort: int) -> MaskedCohort:
        """A cohort, by its members' bit map; read from the chain once, because its keys no longer change."""
        if cohort not in self.known.masked:
            self.known.masked[cohort] = masked_cohort(self._task.ledger, self._task.number, self.number, cohort)
        return self.known.masked[cohort]

    def masking(self, cohort: int, committed: int) -> dict[int, ShareBundle]:
        """Valid secret shares of the committed hospitals of a cohort, by its members' bit map."""
        if self.known.maskings is None or self.known.maskings[0] != committed:
            self.known.maskings = committed, {}
        found = self.known.maskings[1]
        if cohort not in found:
            task, masked = self._task, self.masked_cohort(cohort)
            found[cohort] = read_share_bundles(task.ledger, task.store, task.number, self.number, masked)
        return found[cohort]

    @property
    def statements(self) -> Statements:
        """Statements of the round's hospitals, read once."""
        if self.known.statements is None:
            self.known.statements = Statements(self._task.ledger, self._task.number, self.number)
        return self.known.statements

    def sound_statements(self, cohort: int, committed: int) -> set[int]:
        """Hospitals of a cohort, by its members' bit map, whose upload has a valid statement."""
        uploads = self.uploads(committed)
        return self.statements.sound(self.masked_cohort(cohort), self.masking(cohort, committed), uploads)

    def uploaders(self, round_state: RoundState) -> int:
        """Bit map of the hospitals that must upload: all that committed.

        In a masked task only those in a large enough masking. The others upload nothing, and their cohort has no sum.
        """
        committed, known = round_state.committed, self.known
        if not self._task.params.masked:
            return committed
        if known.uploaders is None or known.uploaders[0] != committed:
            found = 0
            for cohort in self._viable_cohorts(round_state):
                masking = self.masking(cohort, committed)
                if len(masking) >= self._least(cohort):
                    found |= sum(1 << index for index in masking)
            known.uploaders = committed, found
        return known.uploaders[1]

    def fix_survivors(self, round_state: RoundState) -> None:
        """Fixes on chain the hospitals in the sums. Raises Refused.

        They stay the same if a reorganisation removed the block with them, because hospitals answer for no others.
        """
        survivors = self._sound_uploaders(round_state) if self.survivors is None else self.survivors
        receipt = self._task.ledger.aggregator.fix_survivors(self._task.number, self.number, survivors)
        self.survivors = survivors
        emit("survivors-fixed", round=self.number, survivors=survivors.bit_count(), gas=receipt.gas_used)

    def _sound_uploaders(self, round_state: RoundState) -> int:
        """Bit map of the hospitals with a valid upload, in cohorts that have enough of them for a sum."""
        survivors = 0
        for cohort in self._viable_cohorts(round_state):
            sound = self.sound_statements(cohort, round_state.committed)
            uploaded = sum(1 << index for index in sound) & self.arrived & round_state.committed
            if uploaded.bit_count() >= self._least(cohort):
                survivors |= uploaded
        return survivors

    def _viable_cohorts(self, round_state: RoundState) -> list[int]:
        """Bit maps of their members."""
        tasks, viable = self._task.ledger.tasks, members(round_state.viable_cohorts)
        return [tasks.cohort_members(self._task.number, self.number, cohort) for cohort in viable]

    def _least(self, cohort: int) -> int:
        """Fewest survivors for a sum of a masked cohort, by its members' bit map."""
        return max(self._task.params.min_cohort_size, self.masked_cohort(cohort).least)

    def answers(self, round_state: RoundState) -> dict[int, CohortAnswers]:
        """Survivors' answers, by number of viable cohort."""
        if self.known.answers is None:
            task, cohorts = self._task, self.cohorts(round_state)
            self.known.answers = {
                c: cohort_answers(task.ledger, task.store, task.number, self.number, cohorts[c], round_state)
                for c in members(round_state.viable_cohorts)
            }
        return self.known.answers

    def has_parts(self, state: TaskState, round_state: RoundState) -> bool:
        """True if survivors owe no upload any more, and every cohort's masks are known or no answer is expected.

        Uploads may be missing here that an earlier machine had when it fixed the survivors.
        """
        if state.phase is not Phase.PUBLISHING or self.collection is None:
            return True
        if round_state.survivors & ~(self.arrived | self.finished):
            return False
        if not self._task.params.masked:
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
        self.asked: int | None = None  # the round of the last requests

    def of(self, number: int) -> RoundWork:
        """The round of this number, which begins now if it is new."""
        if number not in self._work:
            self._work[number] = RoundWork(self._task, number)
            for old in sorted(self._work, key=lambda known: abs(known - number))[KEPT:]:
                del self._work[old]
        return self._work[number]

    def ask(self, number: int) -> RoundWork:
        """Begins the requests of a round. Reads again all data that a reorganisation may have changed."""
        work = self.of(number)
        if self.asked != number:
            self.asked, work.known = number, Known()
        return work

    def disconnect(self) -> None:
        """Forgets the connection, so that a new one requests every part."""
        for work in self._work.values():
            work.collection = None
        self.asked = None

    def forget(self) -> None:
        """Forgets every round, because hospitals' indices have changed."""
        self._work.clear()
        self.asked = None
