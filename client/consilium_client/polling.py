"""What nodes share that look at the chain again and again: what of a round may fail, and what it brought."""

from __future__ import annotations

from consilium_chain.errors import ChainError
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, TaskState
from consilium_core.logs import emit
from consilium_zk.errors import ZkError

from consilium_client.errors import ClientError

ROUND_ERRORS = (ClientError, ChainError, ZkError, OSError)  # what may fail of a round, and leaves the node running


class SettledRounds:
    """Tells what each round brought the ledger's account, once the next one has begun or the task has ended."""

    def __init__(self, ledger: Ledger, task: int) -> None:
        self._ledger, self._task = ledger, task
        self._told: int | None = None  # the latest round

    def tell(self, state: TaskState) -> None:
        """Of rounds that were over before the first call, nothing."""
        last = state.round if state.phase is Phase.ENDED else state.round - 1
        if self._told is None:
            self._told = last
        while self._told < last:
            payout = self._ledger.tasks.explain(self._task, self._told + 1, self._ledger.address)
            self._told += 1
            emit(
                "settled", round=self._told, reason=payout.reason.name, reward=str(payout.reward),
                slash=str(payout.slash),
            )  # fmt: skip
