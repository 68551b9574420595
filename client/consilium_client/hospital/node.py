"""A hospital's node: the one process that holds its data, its key and its model code.

It joins a task, and for each round that the chain deals it into, it trains from the base that it derives itself and
signs a commitment. Whoever asks over Flower gets first that, to commit it in this hospital's name, and the update,
masked unless the task says otherwise, only once commitments are seen closed on chain. What nobody commits in time, the
node commits itself.
"""

from __future__ import annotations

import datetime
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import ChainError, KeystoreError, Refused, TransactionRejected, name_of
from consilium_chain.keystore import read_private_file, write_private_file
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.roles import NO_KEY, CommittedUpdate
from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, Role, RoundState, TaskState
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rounds.machine import blaming_step
from consilium_chain.rpc.retry import retry_policy
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE
from consilium_core.connectivity import host_and_port, why_shut_out
from consilium_core.logs import emit, hint
from consilium_zk.blame import upload_digest
from consilium_zk.blobs import Blob, scale, with_blinders
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.curve import to_eip2537
from consilium_zk.kzg import commit, open_combined, setup
from consilium_zk.masks import BYTES_PER_SEED
from consilium_zk.packing import pack, packed
from consilium_zk.quantise import Quantiser, clip_norm
from eth_utils.address import to_checksum_address
from numpy.typing import NDArray

from consilium_client.config import HospitalSettings
from consilium_client.consent import Policy, read_policy
from consilium_client.data.examples import Examples, read_examples
from consilium_client.data.split import LEAST_SALT, split
from consilium_client.data.standardise import round_0_values
from consilium_client.errors import (
    ApprovalStale,
    NotDealt,
    NotInTask,
    PendingUpdateLost,
    TooFewRows,
    TransportKeyInvalid,
)
from consilium_client.home import SALT_FILE, is_paused, running_alone
from consilium_client.hospital.audit_log import AUDIT_FILE, AuditLog
from consilium_client.hospital.ipc_server import Listener
from consilium_client.hospital.masking import Accused, Masking
from consilium_client.hospital.pending_updates import PendingUpdate, PendingUpdates
from consilium_client.hospital.transport_key import read_transport_key, transport_public_key
from consilium_client.models import Inputs, Model, Vector, model_of
from consilium_client.models.metrics import accuracy, log_loss
from consilium_client.models.training import require_device, train
from consilium_client.polling import ROUND_ERRORS, SettledRounds
from consilium_client.privacy.exact_statistics import StatisticsLedger
from consilium_client.relay.processes import RelayProcesses
from consilium_client.relay.wire import RoundReply, RoundRequest
from consilium_client.replay import PublicRecord
from consilium_client.task import JoinedTask, load_task

if TYPE_CHECKING:
    from consilium_client.privacy.private_rounds import PrivateRounds

# In which phases a hospital hands over a part of its round: what it signed also to a request that comes late, for only
# then its upload is asked for.
WHEN = {
    Part.SIGNED: (Phase.COMMITTING, Phase.UPLOADING),
    Part.UPLOAD: (Phase.UPLOADING,),
    Part.ANSWER: (Phase.PUBLISHING,),
}
JUDGED = (Phase.DRAWING, Phase.SCORING, Phase.REVEALING)
PLACE_LOOKS = 5  # blocks
SEED_BITS = 128  # of the operating system's randomness
LINK_LOOKS = 20.0  # seconds between two looks at a SuperLink that asks for nothing
RESUMABLE = (Phase.COMMITTING, Phase.UPLOADING, Phase.PUBLISHING)


@dataclass
class _Round:
    """Where this node stands in the latest round that it took up."""

    number: int
    update: PendingUpdate | None = None  # once it is made; never another one
    train_s: float = 0.0
    trained_at: float = field(default_factory=time.monotonic)
    send_at: int = 0  # by the chain's clock: from then on this node's own transaction
    sent: bool = False
    told: bool = False


class HospitalNode:
    """One hospital in one task.

    `local_update`, `committed`, `uploaded` and `testimony` are what a dishonest hospital would replace.
    """

    def __init__(self, settings: HospitalSettings) -> None:
        self.settings = settings
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.audit = AuditLog(settings.home / AUDIT_FILE)
        self.ledger: Ledger = settings.connect()
        self.ledger.connection.transactions.witness = self.audit
        name = self.ledger.folder_name(settings.task)
        self.store = ArtifactStore(settings.artifacts, passing=settings.home / CACHE / name)
        self.task: JoinedTask = load_task(self.ledger, self.store, settings.task)
        self.policy: Policy = self.consent()
        self.examples, self.own_test = self._split(self.read_data())
        self.policy.require_rows(self.task.spec, self.examples.rows)
        self.model: Model = model_of(self.task.spec)
        self.model.require_installed()
        require_device(settings.device)
        self.record = PublicRecord(self.ledger, self.store, self.task)
        self.pending = PendingUpdates(settings.home / "pending" / name, self.ledger.address)
        self.masking: Masking | None = None
        if self.task.params.masked:
            self.masking = Masking(settings.home / "masking" / name, self.ledger, self.store, settings.task)
        self.private = self._private_rounds()
        self.given = StatisticsLedger(settings.statistics_file) if self.task.spec.statistics == "exact" else None
        self._inputs: Inputs | None = None
        self._round = _Round(-1)
        self._testified: set[tuple[int, int]] = set()  # in which rounds and steps
        self._resume_refused = -1  # the latest round in which this account could not pay for returning
        self._settled = SettledRounds(self.ledger, settings.task)
        self._block = 0
        self._read_ahead = STATISTICS_ROUND  # of which round the sums were read, or tried to be
        self._link_tried, self._unreachable = -LINK_LOOKS, ""  # when, and what was told of it
        self._asked = -1  # the latest round that a request came for
        self._reached = threading.Event()  # the aggregator's first request came through
        self._lock = threading.Lock()

    def consent(self) -> Policy:
        """What this hospital allows, after seeing that it allows this task, and that this is the one approved.

        Raises PolicyInvalid, NotAllowed, ApprovalStale.
        """
        approved, found = self.settings.approved, self.task.params.spec_hash.hex()
        if approved != found:
            raise ApprovalStale(self.task.number, f"has keccak256 {approved}, and the chain names {found}")
        policy = read_policy(self.settings.policy, Policy)
        policy.require(self.task.spec, self.ledger.tasks.state(self.task.number).operator)
        return policy

    def read_data(self) -> Examples:
        return read_examples(self.settings.data, self.task.spec.data, self.settings.mapping)

    def _split(self, examples: Examples) -> tuple[Examples, Examples | None]:
        """What is trained on, and what is kept from it. Raises TooFewRows."""
        if self.settings.held_out == 0:
            return examples, None
        path = self.settings.home / SALT_FILE
        if not path.exists():
            write_private_file(path, secrets.token_hex(LEAST_SALT))
        try:
            salt = bytes.fromhex(read_private_file(path))
        except ValueError:  # which would quote it
            raise KeystoreError(f"{path} is not the {2 * LEAST_SALT} hexadecimal digits that were written") from None
        kept, out = split(examples, self.settings.held_out, salt)
        if kept.rows == 0:
            raise TooFewRows(0, 1)
        return kept, out if out.rows else None

    def _private_rounds(self) -> PrivateRounds | None:
        """Raises EpsilonUnreachable, ChargesUnknown, DeploymentInvalid."""
        task, policy = self.task, self.policy
        if task.spec.privacy is None:
            return None
        from consilium_client.privacy.accountant import Budget
        from consilium_client.privacy.private_rounds import PrivateRounds  # Opacus takes seconds to import, and 120 MB

        own = None if policy.max_epsilon is None else Budget(policy.max_epsilon, policy.delta)
        place, rows = self.ledger.folder_name(task.number), self.examples.rows
        found = PrivateRounds(self.settings.ledger_file, own, place, task.spec, task.spec.privacy, rows)
        for ledger in (self.ledger, *self._earlier_contracts()):
            found.make_up(ledger, self.store)
        return found

    def _require_givable(self, given: StatisticsLedger) -> None:
        """Raises ExactStatisticsError where no exact statistics of these rows may leave; DeploymentInvalid."""
        for ledger in (self.ledger, *self._earlier_contracts()):
            given.require_complete(ledger, self.store)
        given.require_givable(self.ledger.folder_name(self.task.number), self.examples, self.task.spec.data)

    def _earlier_contracts(self) -> Iterator[Ledger]:
        """Of those that are on this chain. Raises DeploymentInvalid."""
        for book in map(Deployment.read, self.settings.earlier_deployments):
            if book.chain_id == self.ledger.connection.chain_id:
                yield Ledger(self.ledger.connection, book)

    # Joining and running

    def join(self) -> None:
        """Stakes the bond and joins, unless this account is in the task already."""
        if self.ledger.address not in [h.node for h in self.ledger.tasks.hospitals(self.task.number)]:
            if self.private:
                self.private.require_affordable()
            if self.given:
                self._require_givable(self.given)
            key = read_transport_key(self.settings.flower.transport_key)
            bond = self.task.params.hospital_bond
            sealing_key = self.masking.sealing_key if self.masking else NO_KEY
            self.ledger.hospital.join(self.task.number, self.examples.rows, key, sealing_key, stake=bond)
        self.index = self._place_joined()
        if self.masking and self.ledger.tasks.state(self.task.number).phase is not Phase.ENDED:
            self.masking.require_key(self.index)
        emit("joined", role="hospital", index=self.index, rows=self.examples.rows)
        setup()  # while others join

    def _place(self) -> int | None:
        """This account's among the task's hospitals; None where it is none of them."""
        nodes = [hospital.node for hospital in self.ledger.tasks.hospitals(self.task.number)]
        return nodes.index(self.ledger.address) if self.ledger.address in nodes else None

    def _place_joined(self) -> int:
        """Once it has joined. Raises NotInTask."""
        block = 0
        for _ in range(PLACE_LOOKS):  # a chain node may lag behind the one that told of the receipt
            if (index := self._place()) is not None:
                return index
            block = self.ledger.connection.blocks.wait_after(block)
        raise NotInTask(self.task.number, self.ledger.address)

    def _keeps_place(self, state: TaskState) -> bool:
        """Whether it is in the task. Joins again where the block that had it is gone, and stands where others' joining
        has come to put it: a reorganisation may bring transactions back in another order.
        """
        if state.round != STATISTICS_ROUND or state.phase is Phase.ENDED:
            return True
        index = self._place()
        if index is None and state.phase is Phase.JOINING:
            emit("joining-undone", role="hospital")
            try:
                self.join()
            except Refused as error:  # what was sent before came back, or another has the place: the next look tells
                emit("refused", call=error.call, error=error.name)
        elif index is not None and index != self.index:
            emit("moved", role="hospital", index=index)
            self.index = index
        return index is not None

    def run(self) -> None:
        """Takes part until the task ends, then takes the bond back and collects the rewards."""
        with running_alone(self.settings.runtime, self.task.number):
            self.join()
            self._take_turns()
            while not self._left():
                self._take_turns()

    def _take_turns(self) -> None:
        socket_path = self.settings.runtime / "node.sock"
        listening = Listener(socket_path, self.answer, self.leaving)
        with listening as listener, RelayProcesses(self.settings, socket_path) as relay:
            turns = retry_policy()
            while turns(self._turn, listener, relay) is not Phase.ENDED:
                pass

    def _left(self) -> bool:
        """Whether it has; not where the block that ended the task is gone."""
        try:
            self.ledger.staking.release_bond(self.task.number, self.ledger.address)
            self.ledger.staking.claim(Role.HOSPITAL)
        except Refused as error:
            if error.name != "WrongPhase":
                raise
            emit("end-undone", role="hospital")
            return False
        except TransactionRejected as error:  # nothing is lost: both can be done at any later time
            self._tell_unpaid("not-claimed", error)
        self.pending.forget()
        if self.masking:
            self.masking.forget()
        self.store.forget()
        emit("left", role="hospital", balance=str(self.ledger.token.balance(self.ledger.address)))
        return True

    def _turn(self, listener: Listener, relay: RelayProcesses) -> Phase:
        """Does what the chain's state asks for, and waits for the next block. Raises ChainUnreachable."""
        listener.raise_fault()
        state = self.ledger.tasks.state(self.task.number)
        is_in = self._keeps_place(state)
        self._settled.tell(state)
        # By the time that joining is over, the aggregator has registered this transport key.
        if is_in and state.phase not in (Phase.JOINING, Phase.ENDED):
            self._testify_if_accused(state)  # before all else: a node may have started late, and silence is slashed
            for name, status in relay.keep_running().items():
                emit("relay-ended", process=name, status=status, log=str(relay.logs / f"{name}.log"))
            self._watch_link(state, time.monotonic())
            self._resume_if_absent(state)
            self._take_part(state)
            self.read_ahead(state)
        if state.phase is not Phase.ENDED:
            self._block = self.ledger.connection.blocks.wait_after(self._block)
        return state.phase

    def sits_out(self) -> str | None:
        """Why no round is begun at this time; None where one may be."""
        if is_paused(self.settings.home):
            return "paused"
        return None if self.policy.allows_now(datetime.datetime.now()) else "hours"

    def _watch_link(self, state: TaskState, now: float) -> None:
        """Where no request for this round has come: whether the aggregator's SuperLink can be reached at all.

        `now`: seconds of any clock that goes on. Flower connects again by itself; this says in words what it waits for.
        """
        waits = state.phase in (Phase.COMMITTING, Phase.UPLOADING) and self._asked < state.round
        if not (waits or self._unreachable) or now - self._link_tried < LINK_LOOKS:
            return
        self._link_tried = now
        superlink, authority = self.settings.flower.superlink, self.settings.flower.ca_certificate
        why = self._why_unknown() or why_shut_out(*host_and_port(superlink), authority) or ""
        if why and why != self._unreachable:
            emit("superlink-unreachable", superlink=superlink, why=why)
        elif self._unreachable and not why:
            emit("superlink-reached", superlink=superlink)
        self._unreachable = why

    def _why_unknown(self) -> str | None:
        """Why the SuperLink would not know this node, in words."""
        path = self.settings.flower.transport_key
        try:
            own = transport_public_key(path)
        except TransportKeyInvalid as error:
            return str(error)
        if self.ledger.record.transport_keys(self.task.number).get(self.index, own) == own:
            return None
        return f"{path} is not the node key that was announced when it joined, the only one known there: restore it"

    def _take_part(self, state: TaskState) -> None:
        """Trains as soon as the chain says so, and then sees to it that the update is committed.

        In the first round only once the aggregator's request has come through: a hospital that cannot be reached yet,
        for Flower takes seconds to start, would commit to what it cannot upload in time.
        """
        reachable = state.round != STATISTICS_ROUND or self._reached.is_set()
        if state.phase is Phase.COMMITTING and state.round != self._round.number and reachable:
            try:
                self._update(state.round)
            except ROUND_ERRORS as error:
                emit("round-failed", round=state.round, error=name_of(error))
        unseen = not self._round.told or state.phase is Phase.COMMITTING
        if self._round.number == state.round and self._round.update and unseen:
            self._see_committed(state, self._round, self._round.update)

    def _see_committed(self, state: TaskState, round_: _Round, update: PendingUpdate) -> None:
        """Tells of the commitment once it is on chain; sends it where half of the time for it went by without."""
        if self._is_committed(state.round):
            if not round_.told:
                self._tell_committed(round_, update, by="relay")
            return
        if round_.told:  # and the block that had it is gone
            round_.told = round_.sent = False
        if (
            state.phase is Phase.COMMITTING
            and not round_.sent
            and self.ledger.connection.blocks.now() >= round_.send_at
        ):
            round_.sent = True
            signed = update.signed
            own = CommittedUpdate(signed.points, signed.opening, self._dealing(state.round, update.seed))
            try:
                receipt = self.ledger.hospital.commit_update(self.task.number, state.round, own)
            except Refused as error:
                if error.name not in ("AlreadyCommitted", "WrongPhase"):  # relayed meanwhile: the next look tells
                    emit("refused", call=error.call, error=error.name, round=state.round)
            except TransactionRejected as error:
                self._tell_unpaid("not-committed", error, round=state.round)
            else:
                self._tell_committed(round_, update, by="own", gas=receipt.gas_used)

    def _is_committed(self, round_: int) -> bool:
        return bool(self.ledger.tasks.round_state(self.task.number, round_).committed >> self.index & 1)

    @staticmethod
    def _tell_committed(round_: _Round, update: PendingUpdate, **how: object) -> None:
        round_.told = True
        emit(
            "committed", round=round_.number, blobs=len(update.blobs), train_s=round(round_.train_s, 3),
            commit_s=round(time.monotonic() - round_.trained_at, 3), **how,
        )  # fmt: skip

    def _tell_unpaid(self, event: str, error: TransactionRejected, **fields: object) -> None:
        """The node's words for it stay out of the journal; what this account has for gas says most."""
        emit(event, call=error.call, error=type(error).__name__, wei=str(self.ledger.connection.ether()), **fields)

    def _resume_if_absent(self, state: TaskState) -> None:
        if state.phase not in RESUMABLE or self._active(state) or self._resume_refused == state.round:
            return
        if self.sits_out():
            return
        if self.private and self.private.spent:  # it could only sit out again, and others would wait for it
            return
        if self.ledger.tasks.hospitals(self.task.number)[self.index].bond:
            try:
                self.ledger.hospital.resume(self.task.number)
                emit("resumed", round=state.round)
            except Refused as error:  # the phase ended meanwhile: in the next round, then
                emit("refused", call=error.call, error=error.name, round=state.round)
            except TransactionRejected as error:
                self._tell_unpaid("not-resumed", error, round=state.round)
                self._resume_refused = state.round

    def _testify_if_accused(self, state: TaskState) -> None:
        """Where this hospital's cohort has no sum: what it masked with, in the steps that the chain gives."""
        if state.phase is not Phase.BLAMING or self.masking is None:
            return
        step = blaming_step(state, self.task.params.publish_window, self.ledger.connection.blocks.now())
        round_state = self.ledger.tasks.round_state(self.task.number, state.round)
        asked = round_state.accused & round_state.survivors
        if step not in (0, 1) or (state.round, step) in self._testified or not asked >> self.index & 1:
            return
        try:
            testimony = self.testimony(step, state.round, round_state)
            if testimony:
                receipt = self.ledger.hospital.testify(self.task.number, state.round, step, testimony)
                emit("testified", round=state.round, step=step, bytes=len(testimony), gas=receipt.gas_used)
            else:
                emit("nothing-to-show", round=state.round, step=step)
            self._testified.add((state.round, step))
        except TransactionRejected as error:  # as what follows, tried again with each block: silence is slashed
            self._tell_unpaid("not-testified", error, round=state.round, step=step)
        except ROUND_ERRORS as error:
            emit("testimony-failed", round=state.round, step=step, error=name_of(error))

    def testimony(self, step: int, round_: int, round_state: RoundState) -> bytes:
        """In the first step points; in the second agreements, or nothing where nobody's points are wrong."""
        update = self._update(round_)
        if update is None or self.masking is None:
            raise PendingUpdateLost(round_)
        cohort = self._cohort(round_)
        accusation = next(
            accused.accusation
            for number, accused in self.ledger.record.accusations(self.task.number, round_).items()
            if self.ledger.tasks.cohort_members(self.task.number, round_, number) == cohort
        )
        accused = Accused(round_, cohort, cohort & round_state.survivors, accusation, len(update.blobs))
        if step == 0:
            return self.masking.points(accused, self.index, update.seed)
        points, _ = self.ledger.record.testimonies(self.task.number, round_)
        return self.masking.agreements(accused, self.index, update.seed, points)

    def read_ahead(self, state: TaskState) -> None:
        """While a committee judges: what the next base will be made of. What is not there is missed again then."""
        if state.phase not in JUDGED or state.round in (self._read_ahead, self.task.params.rounds):
            return
        self._read_ahead = state.round
        self._show_worth(state.round)
        try:
            self.record.sums.read_ahead(state.round, self.ledger.tasks.round_state(self.task.number, state.round))
        except ROUND_ERRORS as error:
            emit("sums-missing", round=state.round, error=type(error).__name__)

    def _show_worth(self, round_: int) -> None:
        """For the eyes of whoever sits before the node: what the round's base is worth on this hospital's own rows."""
        if self.own_test is None or round_ == STATISTICS_ROUND:
            return
        try:
            inputs = self.model.inputs(self.own_test, self.record.statistics())
            likely = self.model.evaluate(self.record.base(round_), inputs).probabilities
        except ROUND_ERRORS as error:
            emit("sums-missing", round=round_, error=type(error).__name__)
            return
        labels = self.own_test.labels
        hint(
            "worth",
            round=round_,
            rows=len(labels),
            accuracy=accuracy(labels, likely),
            log_loss=log_loss(labels, likely),
        )

    def _active(self, state: TaskState) -> bool:
        return bool(state.active_hospitals >> self.index & 1)

    # A round

    def answer(self, request: RoundRequest) -> RoundReply:
        """The part of a round that is asked for, once it is time: as soon as it is made the signed update, once
        commitments are closed the weighted blobs, once survivors are fixed what unmasks their sum.
        """
        ours = bytes.fromhex(self.ledger.deployment.tasks.removeprefix("0x"))
        if request.contract != ours or request.task != self.task.number:
            return RoundReply(ReplyCode.REFUSED)
        self._reached.set()
        self._asked = max(self._asked, request.round)
        if not self._wait_for(WHEN[request.part], request.round):
            return RoundReply(ReplyCode.SAT_OUT)
        update = self._update(request.round)
        if update is None:
            return RoundReply(ReplyCode.SAT_OUT)
        if request.part is Part.SIGNED:
            dealing = self._dealing(request.round, update.seed)
            return RoundReply(ReplyCode.SIGNED, body=update.signed.to_wire() + dealing)
        if not self._is_committed(request.round):
            return RoundReply(ReplyCode.SAT_OUT)
        if request.part is Part.UPLOAD:
            return self._upload(request.round, update)
        return self._answer(request.round, update)

    def leaving(self, request: RoundRequest, reply: RoundReply) -> None:
        """Writes down a reply before it is handed to the relay. Raises AuditError."""
        frame, size = hashlib.sha256(), 0
        for part in reply.encode():
            frame.update(part)
            size += len(part)
        self.audit.record(
            "reply", to=self.settings.flower.superlink, bytes=size, sha256=frame.hexdigest(), code=reply.code.name,
            contract=to_checksum_address(request.contract), task=request.task, round=request.round,
            blobs=len(reply.blobs), upload=upload_digest(reply.blobs).hex(),
        )  # fmt: skip

    def _upload(self, round_: int, update: PendingUpdate) -> RoundReply:
        committed = self.ledger.record.points_of(self.task.number, round_, self.ledger.address)
        if committed not in (None, update.signed.compressed):  # another, of which this home, an older copy, knows not
            raise PendingUpdateLost(round_)
        weight = 1 if round_ == STATISTICS_ROUND else self.ledger.tasks.hospitals(self.task.number)[self.index].weight
        weighted = [scale(blob, weight) for blob in update.blobs]
        emit("uploading", round=round_, blobs=len(weighted))
        if self.masking is None:
            return RoundReply(ReplyCode.OK, weighted)
        place = round_, self._cohort(round_), self.index
        masked = self.uploaded(round_, list(self.masking.masked(*place, update.seed, weighted)))
        statement = self.masking.statement(*place, masked)
        signed = self.ledger.hospital.sign_statement(self.task.number, round_, statement)
        return RoundReply(ReplyCode.OK, masked, signed.to_wire())

    def uploaded(self, round_: int, masked: list[Blob]) -> list[Blob]:
        """What leaves this node in place of its masked blobs, and is signed for."""
        return masked

    def _answer(self, round_: int, update: PendingUpdate) -> RoundReply:
        survivors = self.ledger.tasks.round_state(self.task.number, round_).survivors
        if self.masking is None or not survivors >> self.index & 1:
            return RoundReply(ReplyCode.SAT_OUT)
        cohort = self._cohort(round_)
        body = self.masking.answer(round_, cohort, survivors, self.index, update.seed)
        return RoundReply(ReplyCode.ANSWERED, body=body)

    def _dealing(self, round_: int, seed: bytes, cohort: int | None = None) -> bytes:
        """Among this bit map's hospitals; None: those of the cohort as it is now."""
        if self.masking is None:
            return b""
        return self.masking.dealing(round_, cohort or self._cohort(round_), self.index, seed)

    def _cohort(self, round_: int) -> int:
        """Members of this hospital's cohort: a bit map. Raises NotDealt."""
        cohorts = self.ledger.tasks.round_state(self.task.number, round_).cohorts
        found = (self.ledger.tasks.cohort_members(self.task.number, round_, cohort) for cohort in range(cohorts))
        cohort = next((cohort for cohort in found if cohort >> self.index & 1), 0)
        if not cohort:
            raise NotDealt(round_)
        return cohort

    def _update(self, round_: int) -> PendingUpdate | None:
        """This round's update: as kept from before a restart, or made now. None: not a member, or it failed before.

        What was signed is never made again: of two updates, whoever holds both could choose.
        """
        with self._lock:
            if self._round.number == round_:
                return self._round.update
            state = self.ledger.tasks.state(self.task.number)
            round_state = self.ledger.tasks.round_state(self.task.number, round_)
            if state.round != round_:
                return None
            if not round_state.members >> self.index & 1:  # or not yet: the block that dealt cohorts may be gone
                return None
            cohort = self._cohort(round_)
            self._round = _Round(round_)
            update = self.pending.read(round_)
            if update is None and round_state.committed >> self.index & 1:
                raise PendingUpdateLost(round_)
            if update is None and state.phase is Phase.COMMITTING:  # later is too late to commit
                if why := self.sits_out():
                    emit("sits-out", round=round_, why=why)
                    return None
                update = self._make(self._round, cohort)
            if self.settings.commits == "relayed":
                now = self.ledger.connection.blocks.now()
                self._round.send_at = now + (state.deadline - now) // 2
            self._round.update = update
            return update

    def _make(self, round_: _Round, cohort: int) -> PendingUpdate:
        """For the cohort as it was before training: which another one may follow, in which this one is unsound."""
        started = time.monotonic()
        emit("training", round=round_.number)
        blobs = [self._blinded(blob) for blob in self._packed(round_.number)]
        round_.trained_at = time.monotonic()
        round_.train_s = round_.trained_at - started
        seed = secrets.token_bytes(BYTES_PER_SEED)
        committed = replace(self.committed(round_.number, blobs), dealing=self._dealing(round_.number, seed, cohort))
        update = PendingUpdate(
            self.ledger.hospital.sign_update(self.task.number, round_.number, committed), blobs, seed
        )
        self.pending.write(round_.number, update)
        return update

    def _packed(self, round_: int) -> list[Blob]:
        spec = self.task.spec
        if round_ == STATISTICS_ROUND:
            if self.given:  # on disk before anything of it is signed
                self._require_givable(self.given)
                self.given.give(self.ledger.folder_name(self.task.number), self.examples, spec.data)
            values = round_0_values(self.examples, spec)
            lanes = Quantiser(STATISTICS_BITS, STATISTICS_RANGE).quantise(values, None)
            return pack(lanes, spec.statistics_layout)
        update = clip_norm(self.local_update(round_, self.record.base(round_)), spec.update.clip_norm)
        return list(packed(self._lanes(update), spec.update_layout))

    def _lanes(self, update: NDArray[np.float64]) -> Iterator[NDArray[np.uint64]]:
        """The quantised update, a blob's lanes at a time, of which every one is in use: zeros follow the parameters."""
        spec = self.task.spec
        size = spec.update_layout.lanes_per_blob
        quantiser = Quantiser(spec.update.bits, spec.update.value_range)
        noise = np.random.default_rng(secrets.randbits(SEED_BITS))
        for start in range(0, spec.lanes, size):
            part = update[start : start + size]
            part = np.pad(part, (0, size - len(part)))
            yield quantiser.quantise(part, noise.random(size))

    def local_update(self, round_: int, base: Vector) -> NDArray[np.float64]:
        """Trains from `base`; the difference to it, float64 (p,). Never the same twice: what two tasks show of the same
        rows must not differ by what differs in the rows alone.
        """
        given = base, self.inputs(), self.examples.labels

        def seen(done: int, steps: int, loss: float) -> None:
            hint("training", step=done, of=steps, loss=loss)

        if self.private is None:
            trained = train(self.task.spec, *given, secrets.randbits(SEED_BITS), seen, self.settings.device)
        else:
            trained = self.private.train(round_, *given, seen, self.settings.device)
        return np.subtract(trained, base, dtype=np.float64)

    def inputs(self) -> Inputs:
        """What the model is given of this hospital's examples, once round 0 is settled."""
        if self._inputs is None:
            self._inputs = self.model.inputs(self.examples, self.record.statistics())
        return self._inputs

    def committed(self, round_: int, blobs: Sequence[Blob]) -> CommittedUpdate:
        """A commitment to each blob, and the opening at the challenge that binds them to this hospital and round."""
        commitments = [commit(blob) for blob in blobs]
        challenge = self.ledger.messages.challenge(self.task.number, round_, self.ledger.address, commitments)
        points = b"".join(to_eip2537(commitment) for commitment in commitments)
        return CommittedUpdate(points, open_combined(blobs, challenge))

    @staticmethod
    def _blinded(blob: Blob) -> Blob:
        return with_blinders(blob, secrets.randbelow(BLS_MODULUS), secrets.randbelow(BLS_MODULUS))

    def _wait_for(self, phases: Sequence[Phase], round_: int) -> bool:
        """Whether the round comes to one of these phases. It may be the next one: requests are sent ahead."""
        block = 0
        while True:
            state = self.ledger.tasks.state(self.task.number)
            if state.phase is Phase.ENDED or not state.round <= round_ <= state.round + 1:
                return False
            if state.round == round_ and state.phase in phases:
                return True
            if state.round == round_ and state.phase > max(phases):
                return False
            if state.phase is Phase.COMMITTING and self.ledger.connection.blocks.now() > state.deadline:
                self._tick()
            block = self.ledger.connection.blocks.wait_after(block)

    def _tick(self) -> None:
        """Anyone may move a phase on whose deadline passed; that another was first is no fault."""
        try:
            self.ledger.phases.tick(self.task.number)
        except ChainError as error:
            emit("tick-refused", error=type(error).__name__)
