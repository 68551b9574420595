"""The aggregator: conducts a task's rounds. Flower carries uploads, the chain says what phase it is and what holds."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from consilium_chain.artifacts.store import CACHE, CHECK_BITS, ArtifactStore
from consilium_chain.errors import (
    ChainUnreachable,
    RandomnessUnavailable,
    Refused,
    SpecMismatch,
    TransactionRejected,
    TransportKeyMalformed,
)
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import (
    NOTHING_SAID,
    Accusation,
    Canaries,
    CohortsFate,
    OpenedBlob,
    OpenedCohort,
    PublishedCohort,
)
from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, Role, RoundState, TaskState, ballot_size, members
from consilium_chain.rounds.disputes import find_culprits
from consilium_chain.rounds.machine import (
    WAITING,
    Step,
    View,
    deadline_passed,
    expected_uploads,
    last_round,
    margin,
    next_step,
)
from consilium_chain.rounds.secret_shares import masked_cohort, read_dealings
from consilium_chain.rounds.signed_updates import SignedUpdate
from consilium_chain.rounds.sums import PublishedSums
from consilium_chain.rpc.cell_proofs import CellProver
from consilium_chain.rpc.retry import retry_policy
from consilium_chain.tasks.proposal import keeps, task_params
from consilium_chain.tasks.task_spec import PAGE_GAS, parse_task_spec, settle_gas
from consilium_core.logs import emit
from consilium_zk.curve import to_eip2537
from consilium_zk.dealing import Dealing
from consilium_zk.errors import DealingInvalid, EvidenceMalformed
from consilium_zk.kzg import setup
from consilium_zk.secure_aggregation import MaskedCohort
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from consilium_server.aggregator.collection import Carrier, Collection
from consilium_server.aggregator.committer import Committer
from consilium_server.aggregator.decoys import SEED_BYTES, HiddenSums, RoundSecrets, are_kept, keep, kept
from consilium_server.aggregator.disputes import Statements, accuse_withholders, make_accusation
from consilium_server.aggregator.reply_store import KeptReplies
from consilium_server.aggregator.round_work import Rounds
from consilium_server.aggregator.running_alone import conducting_alone
from consilium_server.aggregator.unmasking import CohortAnswers, cohort_answers
from consilium_server.aggregator.uploads import CohortSum, Contribution, Upload, sum_cohort, wrong_uploads
from consilium_server.config import AggregatorSettings
from consilium_server.errors import CanariesLost, SumMismatch, SuperLinkFailed
from consilium_server.flower.internals import DATABASE, SuperLink

POLL, SLOWEST_POLL = 0.15, 1.0  # seconds between looks for replies: the longer a block takes, the less they hurry
POLLS_OF_A_BLOCK = 12
SHORTEST_WAIT, LONGEST_WAIT = 1.0, 15.0  # seconds: for a chain node, for ether, before another SuperLink is started
AHEAD = (*WAITING, Phase.SCORING, Phase.REVEALING)
MOST_PROVERS = 8
SETTLE_GAS = 200_000  # but for what grows with nodes and scores
# What phases are for: where it was refused, only the deadline ends them.
PURPOSE: dict[Phase, tuple[Step, ...]] = {
    Phase.UPLOADING: (Step.FIX_SURVIVORS, Step.PUBLISH),
    Phase.PUBLISHING: (Step.PUBLISH,),
    Phase.BLAMING: (Step.NAME,),
    Phase.REVEALING: (Step.OPEN,),
    Phase.OPENING: (Step.OPEN,),
}
FINAL = (Step.FIX_SURVIVORS, Step.PUBLISH, Step.NAME)  # what is refused of these is not tried again
OVERTAKEN = {"AlreadySummed", "AlreadyPublished"}  # by anybody, who may do a part of it: the rest is still to be done
MOVED = {"WrongPhase", "WrongRound"}  # the chain is elsewhere than it was when the step was chosen
UNOPENABLE = {"BlobMismatch", "CanariesMismatch", "CommitmentMismatch", "PointsWrong"}  # and will be at any time


@dataclass(frozen=True)
class _Summed:
    """A cohort's checked sum, and whose updates are in it."""

    indices: list[int]
    total: CohortSum


class Aggregator:
    """One task's aggregator. `sum_to_publish` is what a dishonest aggregator would replace."""

    def __init__(self, settings: AggregatorSettings) -> None:
        self.settings = settings
        self.ledger: Ledger = settings.connect()
        self.store = ArtifactStore(settings.artifacts, settings.home / CACHE)
        self.number = settings.task
        self.params = self.ledger.tasks.params(self.number)
        self.spec = parse_task_spec(self.store.get_file(self.params.spec_hash))
        if not keeps(self.params, task_params(self.spec, self.params.spec_hash, self.params.aggregator)):
            raise SpecMismatch(f"task {self.number}'s terms on chain are not those of its file; ask its operator")
        self.sums = PublishedSums(self.ledger, self.store, self.number, self.spec)
        self.secrets_folder = settings.home / "canaries" / self.ledger.folder_name(self.number)
        self.replies_folder = settings.home / "replies" / self.ledger.folder_name(self.number)
        self.rounds = Rounds()
        self._block, self._poll = 0, POLL
        self._order: list[str] | None = None  # hospitals', as their nodes were registered
        self._register: Callable[[bytes], int] | None = None
        self._was_up = False  # whether a SuperLink was
        self._patient = retry_policy((ChainUnreachable, TransactionRejected), LONGEST_WAIT)

    def run(self) -> None:
        """Joins, conducts every round, and takes the bond and the fee home; goes on where another process was ended.

        Raises AlreadyConducting, SuperLinkFailed where the first SuperLink does not start.
        """
        with conducting_alone(self.settings.home):
            if self._patient(self.ledger.tasks.state, self.number).phase is not Phase.ENDED:
                self._conduct_with_provers()
            self._patient(self.ledger.staking.release_bond, self.number, self.ledger.address)
            self._patient(self.ledger.staking.claim, Role.AGGREGATOR)
            self._forget()
            emit("left", role="aggregator", balance=str(self._patient(self.ledger.token.balance, self.ledger.address)))

    def _forget(self) -> None:
        """Deletes what nobody asks for once the task has ended: hospitals' replies, and the SuperLink's database."""
        shutil.rmtree(self.replies_folder, ignore_errors=True)
        for file in self.settings.home.glob(f"{DATABASE}*"):
            file.unlink(missing_ok=True)

    def _conduct_with_provers(self) -> None:
        blobs = self.params.cohorts * self.params.update_blobs
        with CellProver(min(blobs, os.cpu_count() or 1, MOST_PROVERS)) as self.ledger.aggregator.prover:
            wait = SHORTEST_WAIT
            while True:
                started = time.monotonic()
                try:
                    return self._conduct_by_flower()
                except SuperLinkFailed as error:
                    if not self._was_up:  # whatever is wrong was wrong before: somebody who looks can tell
                        raise
                    wait = min(2 * wait, LONGEST_WAIT) if time.monotonic() - started < LONGEST_WAIT else SHORTEST_WAIT
                    emit("superlink-failed", error=str(error), wait_s=wait)
                    time.sleep(wait)

    def _conduct_by_flower(self) -> None:
        """To the task's end. Raises SuperLinkFailed."""
        blobs = max(self.params.update_blobs, self.params.statistics_blobs)
        home, port = self.settings.home, self.settings.superlink_port
        with SuperLink(home, port, blobs, self.params.max_hospitals) as superlink:
            superlink.wait_until_up()
            self._was_up = True
            setup()
            # Last: the first round may begin with it, and hospitals must find a SuperLink then.
            self._patient(self._join)
            if self._patient(self._wait_for_participants) is Phase.ENDED:
                return
            self._register = superlink.register
            nodes = self._patient(self._registered)
            with superlink.run() as (grid, context):
                server_app(self, nodes)(grid, context)

    def _registered(self) -> dict[int, int]:
        """Flower node ids by hospitals' indices. Raises SuperLinkFailed.

        A hospital by whose key nobody can be reached is absent, and the others take part.
        """
        order = self._hospitals()
        keys = self.ledger.record.transport_keys(self.number)
        self._order = order if len(keys) == len(order) else None  # where blocks were taken back between the two
        register, nodes = self._register, dict[int, int]()
        if register is None:
            return nodes
        for index, key in sorted(keys.items()):
            try:
                node = register(key)
            except TransportKeyMalformed as error:
                emit("transport-key-unusable", hospital=index, why=str(error))
                continue
            if node in nodes.values():
                emit("transport-key-repeated", hospital=index)
                continue
            nodes[index] = node
        return nodes

    def _hospitals(self) -> list[str]:
        return [hospital.node for hospital in self.ledger.tasks.hospitals(self.number)]

    def _join(self) -> None:
        state = self.ledger.tasks.state(self.number)
        if state.phase is Phase.JOINING and not state.aggregator_joined:
            self.ledger.aggregator.join(self.number, self.params.aggregator_bond)
        emit("joined", role="aggregator")

    def _wait_for_participants(self) -> Phase:
        """The phase that the task is in then."""
        block = 0
        while (state := self.ledger.tasks.state(self.number)).phase is Phase.JOINING:
            if not state.aggregator_joined:  # any more: the block that had it is gone
                self._join()
            if deadline_passed(state, self.ledger.connection.blocks.now()):
                self._attempt(Step.TICK, state, None)
            block = self.ledger.connection.blocks.wait_after(block)
        return state.phase

    def conduct(self, grid: Carrier, nodes: dict[int, int]) -> None:
        """Drives the task from where it is to its end; returns when it has ended."""
        self.rounds.disconnect()
        block_seconds = self._patient(self.ledger.connection.blocks.seconds)
        self._poll = min(max(POLL, block_seconds / POLLS_OF_A_BLOCK), SLOWEST_POLL)
        while self._patient(self._turn, grid, nodes):
            pass

    def _turn(self, grid: Carrier, nodes: dict[int, int]) -> bool:
        """Takes the step that is due, or waits a little; whether the task goes on."""
        state = self.ledger.tasks.state(self.number)
        if state.round == STATISTICS_ROUND and state.phase is not Phase.ENDED:
            self._follow_joining(state, nodes)
        round_state = self.ledger.tasks.round_state(self.number, state.round)
        more_to_come = self._collect(grid, nodes, state, round_state)
        arrived, finished = self._uploads_of(state.round)
        awaited = expected_uploads(round_state, self._cohorts(state, round_state)) & ~(finished & ~arrived)
        if state.phase is Phase.UPLOADING:
            awaited &= self._uploaders(state.round, round_state)
        view = self._view(state, round_state)
        work = self.rounds.of(state.round)
        refused = work.refused in PURPOSE.get(state.phase, ())
        if state.phase is Phase.REVEALING and work.are_canaries_lost:
            refused = deadline_passed(state, view.now)  # the next phase has a deadline of its own to bring them back
        unmasked = self._is_unmasked(state, round_state)
        step = next_step(view, awaited, arrived, refused, unmasked)
        if step is Step.STOP:
            return False
        if step is not Step.WAIT:
            self._attempt(step, state, round_state)
        elif more_to_come:
            time.sleep(self._poll)  # Flower has no other way to say that a node or a reply is there
        else:
            self._block = self.ledger.connection.blocks.wait_after(self._block)
        return True

    def _follow_joining(self, state: TaskState, nodes: dict[int, int]) -> None:
        """Where a reorganisation takes joining back, hospitals may come to stand in another order, and everything that
        goes by their indices is made anew.
        """
        if state.phase is Phase.JOINING:
            self._wait_for_participants()
        if self._register is not None and self._order != self._hospitals():
            nodes.clear()
            nodes.update(self._registered())
            emit("hospitals-moved", hospitals=len(nodes))
            shutil.rmtree(self.replies_folder, ignore_errors=True)
            self.rounds.forget()

    def _view(self, state: TaskState, round_state: RoundState) -> View:
        waits = state.phase in WAITING
        return View(
            state=state,
            round=round_state,
            now=self.ledger.connection.blocks.now(),
            beacon_ready=waits and self.ledger.phases.beacon_ready(round_state.beacon_request),
            beacon_expired=waits and self.ledger.phases.beacon_expired(round_state.beacon_request),
            upload_margin=margin(self.params.upload_window),
            answer_margin=margin(self.params.publish_window),
            masked=self.params.masked,
            publish_window=self.params.publish_window,
            has_canaries=self.params.has_canaries(state.round),
            min_reveals=self.params.min_reveals,
        )

    def _collect(self, grid: Carrier, nodes: dict[int, int], state: TaskState, round_state: RoundState) -> bool:
        """Asks hospitals for their parts, takes in what is there, and commits; whether to look again soon.

        Hospitals are asked for a part before its time: a request takes long on its way, and they answer as soon as they
        have trained, and again once commitments are closed.
        """
        committed = round_state.committed
        if state.phase in (Phase.COMMITTING, Phase.UPLOADING):
            collection = self._collection(grid, nodes, state.round)
            uploads = state.phase is Phase.UPLOADING
            asked = self._uploaders(state.round, round_state) if uploads else round_state.members
            complete = collection.ask(asked, committed)
            self.sums.prepare(state.round)  # while hospitals train
            collection.receive()
            if state.phase is Phase.UPLOADING:
                return True
            self.commit_for_hospitals(collection, round_state)
            return not complete or bool(round_state.members & ~committed)
        if state.phase is Phase.PUBLISHING:
            collection = self._collection(grid, nodes, state.round)
            if self.params.masked:
                collection.ask(round_state.survivors, committed)
                collection.receive()
            return self.params.masked
        ahead = state.round if state.phase is Phase.FORMING else state.round + 1
        if state.phase in AHEAD and ahead <= last_round(state, self.params.rounds):
            self._collection(grid, nodes, ahead).ask(state.active_hospitals)
        return False

    def commit_for_hospitals(self, collection: Collection, round_state: RoundState) -> None:
        """Commits for those who signed, when it is time to: hospitals need no ether for it."""
        committer = self.rounds.of(collection.round).committer
        if committer is not None:
            committer.commit_if_due(self._sound(collection, round_state), round_state, collection.finished)

    def _sound(self, collection: Collection, round_state: RoundState) -> dict[int, SignedUpdate]:
        """Signed updates to be relayed. In a masked task: with a sound dealing, which is stored before it is named."""
        known = self.rounds.of(collection.round).known
        new = collection.signed.keys() - known.relayable.keys() - known.unsound
        cohorts = self._members(round_state, collection.round) if new else []
        for index in new:
            signed = collection.signed[index]
            try:
                self._store_dealing(collection.round, index, signed.dealing, cohorts)
            except DealingInvalid as error:
                emit("dealing-refused", round=collection.round, hospital=index, error=str(error))
                known.unsound.add(index)
            else:
                known.relayable[index] = signed.update
        return known.relayable

    def _store_dealing(self, round_: int, index: int, dealing: bytes, cohorts: Sequence[int]) -> None:
        """Raises DealingInvalid."""
        cohort = next((c for c in cohorts if c >> index & 1), None)
        if self.params.masked and cohort is not None:
            self._masked_cohort(round_, cohort).parse(index, dealing)
            self.store.put_file(dealing)
        elif dealing:
            raise DealingInvalid("nothing is to be dealt here")

    def _masked_cohort(self, round_: int, cohort: int) -> MaskedCohort:
        """A cohort, by its members' bit map; read from the chain once a round, for its keys do not change any more."""
        known = self.rounds.of(round_).known.masked
        if cohort not in known:
            known[cohort] = masked_cohort(self.ledger, self.number, round_, cohort)
        return known[cohort]

    def _collection(self, grid: Carrier, nodes: dict[int, int], round_: int) -> Collection:
        work = self.rounds.ask(round_)
        if work.collection is None:
            contract = bytes.fromhex(self.ledger.deployment.tasks.removeprefix("0x"))
            addresses = [hospital.node for hospital in self.ledger.tasks.hospitals(self.number)]
            kept = KeptReplies(self.replies_folder, round_)
            blobs, masked = self._blob_count(round_), self.params.masked
            work.collection = Collection(grid, nodes, addresses, contract, self.number, round_, blobs, masked, kept)
            work.committer = Committer(self.ledger, self.number, round_, addresses)
        return work.collection

    def _uploads_of(self, round_: int) -> tuple[int, int]:
        """Bit maps of who uploaded, and of who will not."""
        collection = self.rounds.of(round_).collection
        return (0, 0) if collection is None else (collection.arrived, collection.finished)

    def _blob_count(self, round_: int) -> int:
        return self.params.statistics_blobs if round_ == STATISTICS_ROUND else self.params.update_blobs

    def _cohorts(self, state: TaskState, round_state: RoundState) -> list[int]:
        if state.phase is not Phase.UPLOADING:
            return [0] * round_state.cohorts
        return self._members(round_state, state.round)

    def _members(self, round_state: RoundState, round_: int) -> list[int]:
        """Bit maps of hospitals, by cohort."""
        return [self.ledger.tasks.cohort_members(self.number, round_, c) for c in range(round_state.cohorts)]

    def _attempt(self, step: Step, state: TaskState, round_state: RoundState | None) -> None:
        """Takes a step; a refusal is told and remembered, not fatal: others may have been first."""
        try:
            match step:
                case Step.TICK:
                    self.ledger.phases.tick(self.number)
                case Step.FORM_COHORTS if round_state:
                    self.ledger.phases.form_cohorts(self.number, round_state.beacon_request)
                case Step.DRAW_SEATS if round_state:
                    self.ledger.phases.draw_seats(self.number, round_state.beacon_request)
                case Step.SETTLE:
                    self.ledger.phases.settle(self.number, state.round)
                case Step.FIX_SURVIVORS if round_state:
                    self._fix_survivors(state, round_state)
                case Step.PUBLISH if round_state:
                    self._publish(state, round_state)
                case Step.NAME if round_state:
                    self._name(state, round_state)
                case Step.OPEN if round_state:
                    self._open(state, round_state)
        except Refused as error:
            late = {"late_s": self.ledger.connection.blocks.now() - state.deadline} if error.name == "PhaseOver" else {}
            emit("refused", call=error.call, error=error.name, round=state.round, **late)
            if error.name in MOVED:  # what the chain says then is looked at with the next block
                self._block = self.ledger.connection.blocks.wait_after(self._block)
            elif (step in FINAL and error.name not in OVERTAKEN) or error.name in UNOPENABLE:
                self.rounds.of(state.round).refused = step
        except EvidenceMalformed as error:  # of a sum that holds nobody is to be named
            emit("nobody-named", round=state.round, error=str(error))
            self.rounds.of(state.round).refused = step
        except CanariesLost as error:  # until the deadline somebody may bring them back
            work = self.rounds.of(state.round)
            if not work.are_canaries_lost:
                emit("canaries-lost", round=state.round, error=str(error))
            work.are_canaries_lost = True
            self.ledger.connection.blocks.wait_after(self.ledger.connection.blocks.number())
        except RandomnessUnavailable as error:  # whoever gets hold of the round first may prove it
            relays = [failure.name for failure in error.failures]
            emit("randomness-unavailable", round=state.round, drand_round=error.round, relays=relays)
            self.ledger.connection.blocks.wait_after(self.ledger.connection.blocks.number())

    def _fix_survivors(self, state: TaskState, round_state: RoundState) -> None:
        """Those of before, where the block that had them is gone: hospitals answer for no others."""
        work = self.rounds.of(state.round)
        survivors = self._survivors(state, round_state) if work.survivors is None else work.survivors
        receipt = self.ledger.aggregator.fix_survivors(self.number, state.round, survivors)
        work.survivors = survivors
        emit("survivors-fixed", round=state.round, survivors=survivors.bit_count(), gas=receipt.gas_used)

    def _survivors(self, state: TaskState, round_state: RoundState) -> int:
        """Of masked uploads: who uploaded, in cohorts where enough did for their sum to be had."""
        arrived, _ = self._uploads_of(state.round)
        survivors = 0
        for cohort in members(round_state.viable_cohorts):
            present = self._members(round_state, state.round)[cohort]
            sound = self._sound_statements(state.round, present, round_state.committed)
            uploaded = sum(1 << index for index in sound) & arrived & round_state.committed
            if uploaded.bit_count() >= self._least(state.round, present):
                survivors |= uploaded
        return survivors

    def _uploaders(self, round_: int, round_state: RoundState) -> int:
        """Bit map of who is asked to upload: all who committed; in a masked task those of them in a masking that is
        large enough, for others upload nothing, and their cohort can have no sum.
        """
        committed = round_state.committed
        if not self.params.masked:
            return committed
        known = self.rounds.of(round_).known
        if known.uploaders is None or known.uploaders[0] != committed:
            uploaders = 0
            for cohort in members(round_state.viable_cohorts):
                present = self.ledger.tasks.cohort_members(self.number, round_, cohort)
                masking = self._masking(round_, present, committed)
                if len(masking) >= self._least(round_, present):
                    uploaders |= sum(1 << index for index in masking)
            known.uploaders = committed, uploaders
        return known.uploaders[1]

    def _least(self, round_: int, cohort: int) -> int:
        """Fewest survivors with which a masked cohort, by its members' bit map, has a sum."""
        return max(self.params.min_cohort_size, self._masked_cohort(round_, cohort).least)

    def _masking(self, round_: int, cohort: int, committed: int) -> dict[int, Dealing]:
        """Of a cohort, by its members' bit map: who committed with a sound dealing. Read once for these commitments."""
        known = self.rounds.of(round_).known
        if known.maskings is None or known.maskings[0] != committed:
            known.maskings = committed, {}
        found = known.maskings[1]
        if cohort not in found:
            masked = self._masked_cohort(round_, cohort)
            found[cohort] = read_dealings(self.ledger, self.store, self.number, round_, masked)
        return found[cohort]

    def _sound_statements(self, round_: int, cohort: int, committed: int) -> set[int]:
        """Of a cohort, by its members' bit map: who uploaded with a sound statement."""
        masked, dealings = self._masked_cohort(round_, cohort), self._masking(round_, cohort, committed)
        return self._statements_of(round_).sound(masked, dealings, self._uploads(round_))

    def _statements_of(self, round_: int) -> Statements:
        known = self.rounds.of(round_).known
        if known.statements is None:
            known.statements = Statements(self.ledger, self.number, round_)
        return known.statements

    def _uploads(self, round_: int) -> Mapping[int, Upload]:
        collection = self.rounds.of(round_).collection
        return {} if collection is None else collection.uploads

    def _is_unmasked(self, state: TaskState, round_state: RoundState) -> bool:
        """Whether every cohort's masks are known, or will not be."""
        collection = self.rounds.of(state.round).collection
        if not self.params.masked or state.phase is not Phase.PUBLISHING or collection is None:
            return True
        answers = self._answers_of(state, round_state)
        for cohort in answers.values():
            cohort.take(collection.answers)
        return all(cohort.is_over(collection.finished) for cohort in answers.values())

    def _answers_of(self, state: TaskState, round_state: RoundState) -> dict[int, CohortAnswers]:
        known = self.rounds.of(state.round).known
        if known.answers is None:
            cohorts = self._members(round_state, state.round)
            known.answers = {
                cohort: cohort_answers(self.ledger, self.store, self.number, state.round, cohorts[cohort], round_state)
                for cohort in members(round_state.viable_cohorts)
            }
        return known.answers

    def _publish(self, state: TaskState, round_state: RoundState) -> None:
        started = time.monotonic()
        cohorts = self._members(round_state, state.round)
        begun = state.phase is Phase.PUBLISHING
        before = self.ledger.record.published_so_far(self.number, state.round) if begun else NOTHING_SAID
        earlier = self._secrets_before(state.round)
        hidden = self._hidden(state.round, earlier, before.canaries)
        allowed = round_state.survivors if begun else (earlier.survivors if earlier else 0) or ~0
        contributions = self._contributions(state, round_state, allowed)
        survivors, published, dropped = 0, [], []
        accused: dict[int, Accusation] = {}
        for cohort in members(round_state.viable_cohorts):
            indices = [index for index in members(cohorts[cohort]) if index in contributions]
            try:
                if self.params.masked:
                    present = [index for index in indices if round_state.survivors >> index & 1]
                    summed = self._unmasked_sum(state, round_state, cohort, present, contributions)
                else:
                    summed = self._sum(state.round, cohort, indices, contributions)
            except SumMismatch as error:
                if not self.params.masked:
                    raise
                emit("sum-missing", round=state.round, cohort=cohort, error=type(error).__name__)
                accused[cohort] = self._accusation(state, cohort, round_state)
                continue
            if summed is None:
                answers = self._answers_of(state, round_state).get(cohort) if self.params.masked else None
                if answers is not None and answers.at_fault():
                    accused[cohort] = accuse_withholders(self.store, answers.sound)
                else:
                    dropped.append(cohort)
                continue
            parts = [contributions[index] for index in summed.indices]
            shown = self.sum_to_publish(state.round, summed.total, parts)
            if hidden is not None:
                shown = hidden.hide(cohort, shown, sum(part.weight for part in parts))
            survivors |= sum(1 << index for index in summed.indices)
            published.append(self._ready(cohort, shown, parts))
        if hidden is not None and published:  # nothing here must not replace what was published before a restart
            keep(self.secrets_folder, state.round, replace(hidden.secrets, survivors=survivors))
        publish = self.ledger.aggregator.publish_digests if self.params.digests else self.ledger.aggregator.publish_sums
        canaries = hidden.canaries if hidden and published else None
        fate = CohortsFate(None if begun else survivors)
        if self.params.masked:
            fate = CohortsFate(dropped=dropped, accused=accused)
        receipts = publish(self.number, state.round, fate, published, canaries, self.forces(state.round), before)
        emit(
            "published", round=state.round, gas=sum(r.gas_used for r in receipts), cohorts=len(published),
            survivors=survivors.bit_count(), seconds=round(time.monotonic() - started, 3),
        )  # fmt: skip

    def _secrets_before(self, round_: int) -> RoundSecrets | None:
        """Of what was, or was to be, published of this round before. Raises CanariesLost."""
        return kept(self.secrets_folder, round_) if are_kept(self.secrets_folder, round_) else None

    def _hidden(self, round_: int, earlier: RoundSecrets | None, said: Canaries | None) -> HiddenSums | None:
        """By the `earlier` seed, if there is one: what was sent with it may come onto the chain at any time.

        Raises CanariesLost where the chain has been `said` others.
        """
        if not self.params.has_canaries(round_):
            return None
        seed = earlier.seed if earlier else secrets.token_bytes(SEED_BYTES)
        hidden = HiddenSums(
            self.number, round_, seed, self.sums.retreat(round_), dict(earlier.blinders) if earlier else {}
        )
        if said not in (None, hidden.canaries):
            raise CanariesLost(str(self.secrets_folder))
        return hidden

    def _ready(self, cohort: int, shown: CohortSum, parts: Sequence[Contribution]) -> PublishedCohort:
        """What is to be published, stored, and its cell proofs begun."""
        digests = []
        for blob, commitment in zip(shown.blobs, shown.commitments, strict=True):
            if not self.params.digests:
                self.ledger.aggregator.prover.prove(blob, commitment)
            digests.append(self.store.put_blob(blob, commitment))
        points = [[to_eip2537(part.points[blob]) for part in parts] for blob in range(len(shown.blobs))]
        return PublishedCohort(cohort, shown.blobs, points, digests)

    def _unmasked_sum(
        self,
        state: TaskState,
        round_state: RoundState,
        cohort: int,
        indices: list[int],
        contributions: dict[int, Contribution],
    ) -> _Summed | None:
        """A cohort's checked sum; None where its masks are not known.

        Raises SumMismatch where an upload is not what was committed to under the masks that were agreed on.
        """
        residue = self._answers_of(state, round_state)[cohort].residue()
        if residue is None:
            emit("sum-missing", round=state.round, cohort=cohort, error="UnmaskingFailed")
            return None
        parts = [contributions[index] for index in indices]
        factors = [secrets.randbits(CHECK_BITS) for _ in parts[0].points]
        return _Summed(indices, sum_cohort(cohort, parts, factors, residue))

    def _accusation(self, state: TaskState, cohort: int, round_state: RoundState) -> Accusation:
        round_ = state.round
        statements, roots = self._statements_of(round_), self._answers_of(state, round_state)[cohort].roots()
        uploads = self._uploads(round_)
        present = self._members(round_state, round_)[cohort]
        # Whoever fixed the survivors may have been another process, which had read the statements.
        self._sound_statements(round_, present, round_state.committed)
        return make_accusation(self.ledger, self.store, self.number, cohort, round_state, statements, uploads, roots)

    def _name(self, state: TaskState, round_state: RoundState) -> None:
        """Names whose doing it is that accused cohorts have no sum. Raises EvidenceMalformed."""
        culprits = find_culprits(self.ledger, self.store, self.number, state.round, round_state)
        if not culprits:
            raise EvidenceMalformed("every survivor's testimony goes with its upload")
        for index, reason in culprits.items():
            emit("culprit", round=state.round, hospital=index, reason=reason)
        self.ledger.aggregator.name_cheaters(self.number, state.round, sum(1 << index for index in culprits))

    def _sum(
        self, round_: int, cohort: int, indices: list[int], contributions: dict[int, Contribution]
    ) -> _Summed | None:
        """A cohort's checked sum, without the hospitals whose upload is wrong; None if too few are left."""
        if len(indices) < max(self.params.min_cohort_size, 1):
            return None
        parts = [contributions[index] for index in indices]
        try:
            total = sum_cohort(cohort, parts, [secrets.randbits(CHECK_BITS) for _ in parts[0].points])
        except SumMismatch:
            wrong = wrong_uploads({index: contributions[index] for index in indices})
            emit("upload-wrong", round=round_, cohort=cohort, hospitals=wrong)
            if not wrong:
                raise
            return self._sum(round_, cohort, [index for index in indices if index not in wrong], contributions)
        return _Summed(indices, total)

    def sum_to_publish(self, round_: int, total: CohortSum, parts: Sequence[Contribution]) -> CohortSum:
        return total

    def _open(self, state: TaskState, round_state: RoundState) -> None:
        """Shows which sums were turned, and that all of them are the sums; settles in the same go where that fits."""
        secret = kept(self.secrets_folder, state.round)
        points = self.ledger.record.committed_points(self.number, state.round)
        hospitals = self.ledger.tasks.hospitals(self.number)
        cohorts = self._members(round_state, state.round)

        def opened(cohort: int) -> OpenedCohort:
            survivors = [points[hospitals[index].node] for index in members(cohorts[cohort] & round_state.survivors)]
            blobs = [
                OpenedBlob(pair, [to_eip2537(point[blob]) for point in survivors])
                for blob, pair in enumerate(secret.blinders[cohort])
            ]
            return OpenedCohort(cohort, blobs)

        closed = round_state.viable_cohorts & ~round_state.summed_cohorts
        receipts = self.ledger.aggregator.open_canaries(
            self.number, state.round, secret.seed, self.sums.retreat(state.round).points,
            [opened(cohort) for cohort in members(closed)], self._settle_gas(len(hospitals)), self.forces(state.round),
        )  # fmt: skip
        emit("opened", round=state.round, gas=sum(receipt.gas_used for receipt in receipts))

    def _settle_gas(self, hospitals: int) -> int:
        """More than settling a round, or its first page, can cost."""
        voters = self.params.max_voters
        scores = voters * ballot_size(self.params, STATISTICS_ROUND + 1, self.params.cohorts)
        return SETTLE_GAS + min(PAGE_GAS, settle_gas(hospitals + voters, scores))

    def forces(self, round_: int) -> bool:
        """Whether to send the publication, and what opens it, without a dry run."""
        return False

    def _contributions(self, state: TaskState, round_state: RoundState, allowed: int) -> dict[int, Contribution]:
        """Of the hospitals in the bit map `allowed`."""
        points = self.ledger.record.committed_points(self.number, state.round)
        hospitals = self.ledger.tasks.hospitals(self.number)
        statistics = state.round == STATISTICS_ROUND
        return {
            index: Contribution(upload, points[hospitals[index].node], 1 if statistics else hospitals[index].weight)
            for index, upload in self._uploads(state.round).items()
            if round_state.committed & allowed & 1 << index
        }


def server_app(aggregator: Aggregator, nodes: dict[int, int]) -> ServerApp:
    """The aggregator as Flower's ServerApp; `nodes` maps a hospital's index to its Flower node id."""
    app = ServerApp()

    @app.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, context: Context) -> None:
        aggregator.conduct(grid, nodes)

    return app
