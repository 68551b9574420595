"""A hospital's statements in a dispute: its cohort has no sum, and it shows on chain how it masked."""

from __future__ import annotations

from collections.abc import Callable

from consilium_chain.errors import TransactionRejected, name_of
from consilium_chain.ledger.structs import RoundState
from consilium_chain.rounds.machine import View, dispute_step
from consilium_core.logs import emit

from consilium_client.errors import NodeError
from consilium_client.hospital.context import Context
from consilium_client.hospital.masking import Accused
from consilium_client.hospital.round_updates import RoundUpdates
from consilium_client.polling import ROUND_ERRORS, tell_failed


class Dispute:
    """`stated`: rounds and steps whose statement is on chain, or that need none."""

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
                receipt = ledger.hospital.testify(self._context.task.number, round_, step, shown)
                emit("testified", round=round_, step=step, bytes=len(shown), gas=receipt.gas_used)
            else:
                emit("nothing-to-show", round=round_, step=step)
            self.stated.add((round_, step))
        except TransactionRejected as error:
            tell_failed(ledger, error, "not-testified", round=round_, step=step)
        except ROUND_ERRORS as error:
            emit("testimony-failed", round=round_, step=step, error=name_of(error))

    def statement(self, step: int, round_: int, round_state: RoundState) -> bytes:
        """In the first step points of its masks; in the second shared keys, or nothing where all points are right."""
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
        points, _ = ledger.record.testimonies(task, round_)
        return masking.agreements(accused, index, update.seed, points)
