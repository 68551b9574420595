"""Shared by nodes that poll the chain: errors that a round may raise, and events of payouts and of failed calls."""

from __future__ import annotations

from consilium_chain.errors import ChainError, Refused, TransactionRejected, name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import TaskState
from consilium_chain.rounds.machine import has_ended
from consilium_core.logs import emit
from consilium_zk.errors import ZkError

from consilium_client.errors import ClientError

ROUND_ERRORS = (ClientError, ChainError, ZkError, OSError)  # a round may fail with these, and leaves the node running


def tell_failed(ledger: Ledger, error: Refused | TransactionRejected, unpaid: str, **fields: object) -> None:
    """Logs a call that was refused, or by the event `unpaid` one that the account could not pay for.

    The chain node's words stay out of the log; the account's balance for gas says most.
    """
    if isinstance(error, Refused):
        emit("refused", call=error.call, error=error.name, **fields)
    else:
        wei = str(ledger.connection.ether())
        emit(unpaid, call=error.call, error=name_of(error), wei=wei, **fields)


class Payouts:
    """Logs the account's reward and slash of each round, once the next round has begun or the task has ended."""

    def __init__(self, ledger: Ledger, task: int) -> None:
        self._ledger, self._task = ledger, task
        self._told: int | None = None  # the latest round

    def tell(self, state: TaskState) -> None:
        """Says nothing of rounds that were over before the first call."""
        last = state.round if has_ended(state) else state.round - 1
        if self._told is None:
            self._told = last
        while self._told < last:
            payout = self._ledger.tasks.explain(self._task, self._told + 1, self._ledger.address)
            self._told += 1
            emit(
                "settled", round=self._told, reason=payout.reason.name, reward=str(payout.reward),
                slash=str(payout.slash),
            )  # fmt: skip
