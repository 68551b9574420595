"""A hospital's update of each round: made once, committed by others or by itself, handed over masked, and unmasked."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from consilium_chain.errors import Refused, SignedUpdateMalformed, TransactionRejected, name_of
from consilium_chain.ledger.roles import CommittedUpdate
from consilium_chain.ledger.structs import STATISTICS_ROUND
from consilium_chain.messages import ReplyCode, signed_update_bytes
from consilium_chain.rounds.machine import AsHospital, Step, View, next_steps
from consilium_chain.rounds.signed_updates import SignedUpdate, parse_signed_update
from consilium_chain.rpc.retry import retry_policy
from consilium_core.logs import emit
from consilium_core.private_files import write_private_file
from consilium_core.tracing import span
from consilium_zk.basis import Coordinates
from consilium_zk.blobs import Blob, parse_blob, scale, with_blinders
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB, BYTES_PER_COMPRESSED_G1
from consilium_zk.curve import Commitment, parse_commitment
from consilium_zk.errors import Malformed
from consilium_zk.kzg import commit, setup
from consilium_zk.masks import BYTES_PER_SEED

from consilium_client.errors import NodeError
from consilium_client.hospital.context import Context
from consilium_client.hospital.masking import Masking
from consilium_client.hospital.training import Training
from consilium_client.membership import ROUND_ERRORS, log_failed
from consilium_client.models import Vector
from consilium_client.relay.wire import RoundReply

_BYTES_PER_BLOB = signed_update_bytes(1) - signed_update_bytes(0) + BYTES_PER_COMPRESSED_G1 + BYTES_PER_BLOB


@dataclass(frozen=True)
class PendingUpdate:
    """A round's update: unweighted blobs, the commitment to each, the signature that lets any account commit to them in
    this hospital's name, and the seed (32 bytes) of their masks.
    """

    signed: SignedUpdate
    points: Sequence[Commitment]
    blobs: Sequence[Blob]
    seed: bytes


class PendingUpdates:
    """Keeps the latest round's update of `hospital` on its disk, before its signature leaves: a restart must not lose
    the blinders. Nor may it sign a second update, because a holder of both could choose.
    """

    def __init__(self, folder: Path, hospital: str) -> None:
        self._folder, self._hospital = folder, hospital
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, round_: int, update: PendingUpdate) -> None:
        for old in self._folder.glob("round-*"):
            old.unlink()
        write_private_file(
            self._folder / f"round-{round_}",
            b"".join([update.seed, update.signed.to_wire(), *update.points, *update.blobs]),
        )

    def forget(self) -> None:
        """Deletes its files, once the task has ended."""
        for old in self._folder.glob("round-*"):
            old.unlink()

    def read(self, round_: int) -> PendingUpdate | None:
        """None if no update of the round was kept. Raises PendingUpdateLost if the kept one is not complete."""
        try:
            raw = (self._folder / f"round-{round_}").read_bytes()
        except FileNotFoundError:
            return None
        count, rest = divmod(len(raw) - BYTES_PER_SEED - signed_update_bytes(0), _BYTES_PER_BLOB)
        if count < 1 or rest:
            raise NodeError("PendingUpdateLost", round=round_)
        head = BYTES_PER_SEED + signed_update_bytes(count)
        body = head + count * BYTES_PER_COMPRESSED_G1
        try:
            signed = parse_signed_update(raw[BYTES_PER_SEED:head], self._hospital, count)
            points = [
                parse_commitment(raw[i : i + BYTES_PER_COMPRESSED_G1])
                for i in range(head, body, BYTES_PER_COMPRESSED_G1)
            ]
            blobs = [parse_blob(raw[i : i + BYTES_PER_BLOB]) for i in range(body, len(raw), BYTES_PER_BLOB)]
        except (SignedUpdateMalformed, Malformed) as error:
            raise NodeError("PendingUpdateLost", round=round_) from error
        return PendingUpdate(signed, points, blobs, raw[:BYTES_PER_SEED])


class Decisions(Protocol):
    """The hospital's own decisions about an update, as `Hooks` describes them."""

    def sits_out(self) -> str | None: ...

    def local_update(self, round_: int, base: Vector) -> Coordinates: ...

    def point_hashes(self, round_: int, points: Sequence[Commitment]) -> list[bytes]: ...

    def uploaded(self, round_: int, masked: list[Blob]) -> list[Blob]: ...


@dataclass
class RoundWork:
    """The node's work on one round."""

    number: int
    update: PendingUpdate | None = None  # once it is made; never another one
    train_s: float = 0.0
    trained_at: float = field(default_factory=time.monotonic)
    send_at: int = 0  # by the chain's clock: from then on this node's own transaction
    has_sent: bool = False
    is_logged: bool = False  # of the commitment

    def log_committed(self, by: str, **fields: object) -> None:
        self.is_logged = True
        emit(
            "committed", round=self.number, blobs=len(self.update.blobs) if self.update else 0,
            train_s=round(self.train_s, 3), commit_s=round(time.monotonic() - self.trained_at, 3), by=by, **fields,
        )  # fmt: skip


class RoundUpdates:
    """`work`: on the latest round that was begun. A request and the node's own loop may both begin a round."""

    def __init__(self, context: Context, training: Training, decisions: Decisions) -> None:
        self._context, self._training, self._decisions = context, training, decisions
        self._ledger, self._task = context.ledger, context.task.number
        self.pending = PendingUpdates(context.settings.home / "pending" / context.name, self._ledger.address)
        self.masking: Masking | None = None
        if context.task.params.masked:
            folder = context.settings.home / "masking" / context.name
            self.masking = Masking(folder, self._ledger, context.store, self._task)
        self.work = RoundWork(-1)
        self._lock = threading.Lock()

    @staticmethod
    def warm_up() -> None:
        """Loads the setup of commitments, so that the first round does not wait for it."""
        setup()

    @property
    def _index(self) -> int:
        return self._context.membership.index

    def forget(self) -> None:
        """Deletes the files of an ended task."""
        self.pending.forget()
        if self.masking:
            self.masking.forget()

    def of(self, round_: int) -> PendingUpdate | None:
        """This round's update: as kept from before a restart, or made now. None: not a member, or it failed before.

        A signed update is never made again: a holder of two could choose.
        """
        with self._lock:
            if self.work.number == round_:
                return self.work.update
            view = self._context.view()
            if view.state.round != round_ or not view.round.members >> self._index & 1:
                return None  # a reorganisation may have taken the cohorts' block back: looks again
            self._context.cohort(round_)  # raises NotAssigned
            self.work = RoundWork(round_)
            update = self.pending.read(round_)
            if update is None and view.round.committed >> self._index & 1:
                raise NodeError("PendingUpdateLost", round=round_)
            if update is None and Step.TRAIN in next_steps(view, AsHospital(self._index)):  # else it cannot commit
                if why := self._decisions.sits_out():
                    emit("sits-out", round=round_, why=why)
                    return None
                update = self._make(self.work, view)
                if update is None:
                    self.work = RoundWork(-1)  # looks again
                    return None
            if self._context.settings.commits == "relayed":
                now = self._ledger.connection.blocks.now()
                self.work.send_at = now + (view.state.deadline - now) // 2
            self.work.update = update
            return update

    def _make(self, work: RoundWork, view: View) -> PendingUpdate | None:
        """For the hospitals that the chain assigns for good. None if a reorganisation changed them meanwhile."""
        started = time.monotonic()
        emit("training", round=work.number)
        with span("train", round=work.number):
            blobs = [self._blinded(blob) for blob in self._training.packed(work.number, self._decisions.local_update)]
        work.trained_at = time.monotonic()
        work.train_s = work.trained_at - started
        if self.masking and not self._is_confirmed(view):
            return None
        seed = secrets.token_bytes(BYTES_PER_SEED)
        with span("share masks", round=work.number):
            shares = self.secret_shares(work.number, seed)
        base = self._training.record.base_digest(work.number)
        with span("commit points", round=work.number, blobs=len(blobs)):
            points = [commit(blob) for blob in blobs]
            committed = CommittedUpdate(self._decisions.point_hashes(work.number, points), shares, base)
        signed = self._ledger.hospital.sign_update(self._task, work.number, committed)
        update = PendingUpdate(signed, points, blobs, seed)
        self.pending.write(work.number, update)
        return update

    def _is_confirmed(self, view: View) -> bool:
        """Waits until no reorganisation changes the round's hospitals any more. False if one did since the view."""
        patiently = retry_policy()  # else an absence of the chain's node would cost what was trained
        while True:
            now = patiently(self._context.view)
            if (now.state.round, now.roster) != (view.state.round, view.roster):
                return False
            if now.block >= patiently(self._context.signs_at, now):
                return True
            patiently(self._ledger.connection.blocks.wait_after, now.block)

    @staticmethod
    def _blinded(blob: Blob) -> Blob:
        return with_blinders(blob, secrets.randbelow(BLS_MODULUS), secrets.randbelow(BLS_MODULUS))

    def secret_shares(self, round_: int, seed: bytes) -> bytes:
        """Secret shares for the hospitals of its cohort as it is now."""
        if self.masking is None:
            return b""
        return self.masking.secret_shares(round_, self._context.cohort(round_), self._index, seed)

    def note_commitment(self, view: View) -> None:
        """Logs the commitment once it is on chain. If its block was undone, it must be sent again."""
        work = self.work
        if work.number != view.state.round:  # a request began the next round meanwhile
            return
        if view.round.committed >> self._index & 1:
            work.log_committed(by="relay")
        else:
            work.is_logged = work.has_sent = False

    def commit(self, view: View) -> None:
        """Sends its own transaction, because half of the time has passed without a relayed one."""
        work, round_ = self.work, view.state.round
        if work.number != round_ or work.update is None:
            return
        work.has_sent = True
        signed, shares = work.update.signed, self.secret_shares(round_, work.update.seed)
        own = CommittedUpdate(signed.point_hashes, shares, signed.base)
        try:
            self._require_current(round_, work.update)
        except ROUND_ERRORS as error:
            emit("round-failed", round=round_, error=name_of(error))
            return
        try:
            number = self._context.cohort_number(round_)
            receipt = self._ledger.hospital.commit_update(self._task, round_, number, own)
        except (Refused, TransactionRejected) as error:
            # It was relayed meanwhile, which the next poll notes.
            if not (isinstance(error, Refused) and error.name in ("AlreadyCommitted", "WrongPhase")):
                log_failed(self._ledger, error, "not-committed", round=round_)
        else:
            work.log_committed(by="own", gas=receipt.gas_used)

    def _require_current(self, round_: int, update: PendingUpdate) -> None:
        """Raises NodeError (BaseStale) if the update was trained from another base than the record now gives."""
        record = self._training.record
        record.refresh(round_)
        if (now := record.base_digest(round_)) != update.signed.base:
            raise NodeError("BaseStale", round=round_, trained=update.signed.base.hex(), now=now.hex())

    def signed(self, round_: int, update: PendingUpdate) -> RoundReply:
        self._require_current(round_, update)
        body = update.signed.to_wire() + self.secret_shares(round_, update.seed)
        return RoundReply(ReplyCode.SIGNED, body=body)

    def upload(self, round_: int, update: PendingUpdate) -> RoundReply:
        """The points behind the hashes on chain, and the weighted blobs, masked unless the task says otherwise."""
        if not self._is_committed(round_):
            return RoundReply(ReplyCode.SAT_OUT)
        committed = self._ledger.record.point_hashes_of(self._task, round_, self._ledger.address)
        # Another update than the committed one: this home is an older copy, and lacks the other.
        if committed not in (None, list(update.signed.point_hashes)):
            raise NodeError("PendingUpdateLost", round=round_)
        weight = 1 if round_ == STATISTICS_ROUND else self._ledger.tasks.hospitals(self._task)[self._index].weight
        weighted = [scale(blob, weight) for blob in update.blobs]
        emit("uploading", round=round_, blobs=len(weighted))
        points = b"".join(update.points)
        if self.masking is None:
            return RoundReply(ReplyCode.OK, weighted, points)
        of = round_, self._context.cohort(round_), self._index
        masked = self._decisions.uploaded(round_, list(self.masking.masked(*of, update.seed, weighted)))
        signed = self._ledger.hospital.sign_statement(self._task, round_, self.masking.statement(*of, masked))
        return RoundReply(ReplyCode.OK, masked, points + signed.to_wire())

    def unmask(self, round_: int, update: PendingUpdate) -> RoundReply:
        """The answer that takes the masks from the sum of the survivors that the chain has fixed."""
        survivors = self._ledger.tasks.round_state(self._task, round_).survivors
        if self.masking is None or not survivors >> self._index & 1 or not self._is_committed(round_):
            return RoundReply(ReplyCode.SAT_OUT)
        cohort = self._context.cohort(round_)
        body = self.masking.answer(round_, cohort, survivors, self._index, update.seed)
        return RoundReply(ReplyCode.ANSWERED, body=body)

    def _is_committed(self, round_: int) -> bool:
        return bool(self._ledger.tasks.round_state(self._task, round_).committed >> self._index & 1)
