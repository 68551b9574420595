"""A hospital's node: the one process that holds its data, its key and its model code.

It joins a task. In each round whose cohorts include it, it derives the base, trains from it, and signs a commitment.
Flower's first request gets the signed commitment, which the aggregator sends in this hospital's name. The second gets
the update, masked unless the task says otherwise, once commitments are closed on chain. If no other party sends the
commitment in time, the node sends it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from consilium_chain.errors import Refused, TransactionRejected, name_of
from consilium_chain.ledger.roles import NO_KEY
from consilium_chain.ledger.structs import STATISTICS_ROUND, Role
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rounds.machine import AsHospital, Step, View, has_ended, may_come, next_steps
from consilium_chain.rpc.retry import retry_policy
from consilium_chain.settlement.leaving import collect
from consilium_core.errors import CoreError
from consilium_core.logs import emit
from consilium_core.tracing import span

from consilium_client.config import HospitalSettings
from consilium_client.evaluation.handing_in import hand_in
from consilium_client.home import running_alone
from consilium_client.hospital.context import Context
from consilium_client.hospital.hooks import Hooks
from consilium_client.hospital.relay_link import RelayLink
from consilium_client.hospital.round_updates import PendingUpdate, RoundWork
from consilium_client.hospital.transport_key import read_transport_key
from consilium_client.membership import ROUND_ERRORS, log_failed
from consilium_client.monitoring.serving import Watched, watched
from consilium_client.relay.wire import RoundReply, RoundRequest

TRACED = (Step.JOIN, Step.DISPUTE, Step.RESUME, Step.COMMIT, Step.READ_AHEAD)  # others have spans of their parts


class HospitalNode(Hooks):
    """One hospital in one task. `actions`: its method for each step of its own. Requests trigger the other steps."""

    def __init__(self, settings: HospitalSettings) -> None:
        super().__init__(Context.open(settings))
        self.link = RelayLink(self.context, self.answer)
        self.actions: dict[Step, Callable[[View], object]] = {
            Step.JOIN: lambda _: self.context.membership.join_again(self.join),
            Step.DISPUTE: lambda view: self.dispute.state(view, self.dispute_statement),
            Step.RUN_RELAY: lambda _: self.link.keep_running(),
            Step.CHECK_LINK: lambda _: self.link.check(),
            Step.RESUME: self._resume,
            Step.TRAIN: self._train,
            Step.NOTE_COMMITMENT: self.updates.note_commitment,
            Step.COMMIT: self.updates.commit,
            Step.READ_AHEAD: self.training.read_ahead,
        }
        self._parts: dict[Part, tuple[Step, Callable[[int, PendingUpdate], RoundReply]]] = {
            Part.SIGNED: (Step.SIGN, self.updates.signed),
            Part.UPLOAD: (Step.UPLOAD, self.updates.upload),
            Part.ANSWER: (Step.UNMASK, self.updates.unmask),
        }
        self._resume_refused = -1  # the latest round in which this account could not pay for returning
        self._block = 0  # of the latest view

    def join(self) -> None:
        """Stakes the bond and joins, unless this account is in the task already."""
        membership, masking = self.context.membership, self.updates.masking
        if membership.find() is None:
            self.training.privacy.require_affordable()
            self.training.record.base_digest(STATISTICS_ROUND)  # may start from another task
            key = read_transport_key(self.settings.flower.transport_key)
            bond = self.task.params.hospital_bond
            encryption_key = masking.encryption_key if masking else NO_KEY
            self.ledger.hospital.join(self.task.number, self.training.examples.rows, key, encryption_key, stake=bond)
        index = membership.require()
        if masking and not has_ended(self.ledger.tasks.state(self.task.number)):
            masking.require_key(index)
        emit("joined", role="hospital", index=index, rows=self.training.examples.rows)
        self.updates.warm_up()  # while others join

    def run(self) -> None:
        """Takes part until the task ends, then takes the bond back, collects the rewards, and reports the model's
        worth here, if its owner allows that.
        """
        with running_alone(self.settings.runtime, self.task.number):
            self.join()
            with watched(self.settings.metrics, self._watched):
                self._take_part()
                while not self.leave():
                    self._take_part()
            hand_in(self.settings, self.ledger, self.context.store, self.task.number)

    @property
    def _watched(self) -> Watched:
        own, privacy = self.settings, self.training.privacy.rounds
        certificates = {"superlink": own.flower.ca_certificate}
        if own.sponsor and own.sponsor.ca_certificate:
            certificates["sponsor"] = own.sponsor.ca_certificate
        return Watched(
            Role.HOSPITAL, own.home, self.ledger, lambda: {self.task.number: self.index}, self.task.number,
            certificates, privacy.so_far if privacy else None,
        )  # fmt: skip

    def _take_part(self) -> None:
        with self.link:
            patiently = retry_policy()
            while Step.STOP not in patiently(self.poll):
                patiently(self.ledger.connection.blocks.wait_after, self._block)

    def poll(self) -> tuple[Step, ...]:
        """Takes the steps that are due, and returns them. Raises ChainUnreachable."""
        self.link.raise_fault()
        view, due = self.due()
        self._block = view.block
        self.context.membership.log_payouts(view.state)
        for step in due:
            if step in self.actions:
                with span(step.name.lower(), round=view.state.round) if step in TRACED else nullcontext():
                    self.actions[step](view)
        return due

    def due(self) -> tuple[View, tuple[Step, ...]]:
        """The task as the chain has it, and this hospital's next steps in it. Raises ChainUnreachable."""
        view = self.context.view()
        is_member = self.context.membership.stands(view.state, view.roster)
        return view, next_steps(view, self._party(view.state.round, is_member))

    def _party(self, round_: int, is_member: bool) -> AsHospital:
        work = self.updates.work
        has_begun = work.number == round_
        work = work if has_begun else RoundWork(round_)
        spent = self.training.privacy.is_spent  # it could only sit out again, and others would wait for it
        return AsHospital(
            self.index,
            is_member=is_member,
            is_reached=self.link.reached.is_set(),
            is_asked=self.link.requested >= round_,
            is_cut_off=bool(self.link.unreachable),
            can_resume=not spent and self._resume_refused != round_ and not self.sits_out(),
            has_begun=has_begun,
            has_update=work.update is not None,
            knows_commitment=work.is_logged,
            has_sent=work.has_sent,
            send_at=work.send_at,
            disputed=frozenset(self.dispute.stated),
            has_read=self.training.has_read(round_),
        )

    def _train(self, view: View) -> None:
        try:
            self.updates.of(view.state.round)
        except ROUND_ERRORS as error:
            emit("round-failed", round=view.state.round, error=name_of(error))

    def _resume(self, view: View) -> None:
        if not self.ledger.tasks.hospitals(self.task.number)[self.index].bond:
            return
        try:
            self.ledger.hospital.resume(self.task.number)
            emit("resumed", round=view.state.round)
        except (Refused, TransactionRejected) as error:
            log_failed(self.ledger, error, "not-resumed", round=view.state.round)
            if not isinstance(error, Refused):  # refused: the phase ended meanwhile; in the next round, then
                self._resume_refused = view.state.round

    def answer(self, request: RoundRequest) -> RoundReply:
        """Waits for its time, and gives the requested part of a round: the signed update as soon as it is made, the
        weighted blobs once commitments are closed, or the answer that unmasks the sum once survivors are fixed.
        """
        ours = bytes.fromhex(self.ledger.deployment.tasks.removeprefix("0x"))
        if request.contract != ours or request.task != self.task.number:
            return RoundReply(ReplyCode.REFUSED)
        self.link.note(request)
        step, hand_over = self._parts[request.part]
        update = self.updates.of(request.round) if self._wait_for(step, request.round) else None
        if update is None:
            return RoundReply(ReplyCode.SAT_OUT)
        with span(step.name.lower(), round=request.round, blobs=len(update.blobs)):
            return hand_over(request.round, update)

    def _wait_for(self, step: Step, round_: int) -> bool:
        """True once the step is due in this round, False once it cannot come any more. Ends an overdue phase."""
        while may_come((view := self.context.view()).state, round_, step):
            due = next_steps(view, AsHospital(self.index, shows_at=self.context.shows_at(view)))
            if view.state.round == round_ and step in due:
                return True
            if Step.TICK in due:
                self._tick()
            self.ledger.connection.blocks.wait_after(view.block)
        return False

    def _tick(self) -> None:
        """Any account may end a phase after its deadline. It is not a fault if another was first."""
        try:
            self.ledger.phases.tick(self.task.number)
        except CoreError as error:
            emit("tick-refused", error=name_of(error))

    def leave(self) -> bool:
        """Takes the bond and the rewards. False if the block that ended the task was undone."""
        try:
            if not collect(self.ledger, self.task.number, Role.HOSPITAL):
                return False
        except TransactionRejected as error:
            log_failed(self.ledger, error, "not-claimed")
        self.updates.forget()
        self.training.forget()
        self.context.store.forget()
        emit("left", role="hospital", balance=str(self.ledger.token.balance(self.ledger.address)))
        return True
