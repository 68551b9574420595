"""The decisions of a hospital. A dishonest hospital overrides only these methods."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

from consilium_chain.errors import TransactionRejected, name_of
from consilium_chain.ledger.structs import RoundState
from consilium_chain.rounds.machine import View
from consilium_chain.rounds.timing import dispute_step
from consilium_core.logs import emit
from consilium_core.tracing import span
from consilium_zk.basis import Coordinates
from consilium_zk.blobs import Blob
from consilium_zk.curve import Commitment

from consilium_client.consent import Policy, read_policy
from consilium_client.data.door import admitted
from consilium_client.data.examples import Examples, Source
from consilium_client.data.kinds import read_examples
from consilium_client.errors import NodeError, OwnersRefusal
from consilium_client.home import approval_file, is_paused
from consilium_client.hospital.context import Context
from consilium_client.hospital.masking import Accused
from consilium_client.hospital.round_updates import RoundUpdates
from consilium_client.hospital.training import Training
from consilium_client.membership import ROUND_ERRORS, log_failed
from consilium_client.models import Vector
from consilium_client.second_signature import second_signature


class Dispute:
    """A hospital's statements in a dispute: its cohort has no sum, so it shows on chain how it masked.

    `stated`: rounds and steps that are done, with or without a statement.
    """

    def __init__(self, context: Context, updates: RoundUpdates) -> None:
        self._context, self._updates = context, updates
        self.stated: set[tuple[int, int]] = set()

    def state(self, view: View, statement: Callable[[int, int, RoundState], bytes]) -> None:
        """Sends this step's statement. A failure is tried again with each block: silence is slashed."""
        ledger, round_ = self._context.ledger, view.state.round
        step = dispute_step(view.state, view.publish_window, view.now)
        try:
            shown = statement(step, round_, view.round)
            if shown:
                receipt = ledger.hospital.submit_evidence(self._context.task.number, round_, step, shown)
                emit("evidence-submitted", round=round_, step=step, bytes=len(shown), gas=receipt.gas_used)
            else:
                emit("nothing-to-show", round=round_, step=step)
            self.stated.add((round_, step))
        except TransactionRejected as error:
            log_failed(ledger, error, "evidence-not-submitted", round=round_, step=step)
        except ROUND_ERRORS as error:
            emit("evidence-failed", round=round_, step=step, error=name_of(error))

    def statement(self, step: int, round_: int, round_state: RoundState) -> bytes:
        """In the first step, points of its masks. In the second, shared keys, or nothing if all points are right."""
        masking, update = self._updates.masking, self._updates.of(round_)
        if update is None or masking is None:
            raise NodeError("PendingUpdateLost", round=round_)
        ledger, task, index = self._context.ledger, self._context.task.number, self._context.membership.index
        cohort = self._context.cohort(round_)
        accusation = next(
            accused.accusation
            for number, accused in ledger.record.accusations(task, round_).items()
            if ledger.tasks.cohort_members(task, round_, number) == cohort
        )
        accused = Accused(round_, cohort, cohort & round_state.survivors, accusation, len(update.blobs))
        if step == 0:
            return masking.points(accused, index, update.seed)
        points, _ = ledger.record.submitted_evidence(task, round_)
        return masking.agreements(accused, index, update.seed, points)


class Hooks:
    """An honest hospital's decisions."""

    def __init__(self, context: Context) -> None:
        self.context, self.settings = context, context.settings
        self.ledger, self.task = context.ledger, context.task
        self.policy = self.consent()
        with span("read data"):
            data = self.read_data()
        self.training = Training(context, self.policy, data)
        self.updates = RoundUpdates(context, self.training, self)
        self.dispute = Dispute(context, self.updates)

    @property
    def index(self) -> int:
        """This hospital's in the task, once it has joined."""
        return self.context.membership.index

    def consent(self) -> Policy:
        """The hospital's policy, if it allows this task, and the owner approved this task. A second signature, if the
        policy asks for one, is in the audit log at each start.

        Raises PolicyInvalid, NotAllowed, ApprovalStale, AuditError, and as `second_signature` does.
        """
        approved, found = self.settings.approved, self.task.params.spec_hash.hex()
        if approved != found:
            raise OwnersRefusal(
                "ApprovalStale",
                task=self.task.number,
                why=f"you approved keccak256 {approved}, but the chain names {found}",
            )
        policy = read_policy(self.settings.policy, Policy)
        policy.require(self.task.spec, self.ledger.tasks.state(self.task.number).operator)
        number, file = self.task.number, approval_file(self.settings.home, self.task.number)
        spec_hash = self.task.params.spec_hash
        signed = second_signature(policy, self.ledger, self.ledger.address, number, spec_hash, file)
        if signed is not None:
            self.context.audit.approved(self.ledger.deployment.tasks, number, signed)
        return policy

    def read_data(self) -> Examples:
        """Header fields that identify a patient are named in the audit log. Raises DataError, AuditError; before it
        has joined, also DataError (RemarksUnanswered).
        """

        def note(source: Source) -> None:
            if source.identifying:
                self.context.audit.identifying(source.identifying)

        settings, spec = self.settings, self.task.spec
        if self.context.membership.find() is not None:
            return read_examples(settings.data, spec.data, settings.mapping, on_source=note)
        found = admitted(settings.data, spec, settings.mapping, settings.data_accepted, on_source=note)
        found.tell()
        return found.examples

    def sits_out(self) -> str | None:
        """The reason why it begins no round now; None if it may begin one."""
        if is_paused(self.settings.home):
            return "paused"
        return None if self.policy.allows_now(datetime.datetime.now()) else "hours"

    def local_update(self, round_: int, base: Vector) -> Coordinates:
        """The difference that training makes to `base`, as coordinates in the task's basis: float64 (k,)."""
        return self.training.local_update(round_, base)

    def point_hashes(self, round_: int, points: Sequence[Commitment]) -> list[bytes]:
        """The hashes to which this node commits. `points`: the commitment to each blob."""
        return self.ledger.messages.point_hashes(self.task.number, round_, self.ledger.address, points)

    def uploaded(self, round_: int, masked: list[Blob]) -> list[Blob]:
        """The blobs that leave this node, and that it signs for."""
        return masked

    def dispute_statement(self, step: int, round_: int, round_state: RoundState) -> bytes:
        """The statement on an accused cohort, in step 0 or 1."""
        return self.dispute.statement(step, round_, round_state)
