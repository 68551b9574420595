"""What nodes share that look at the chain again and again: what of a round may fail, and how long they wait."""

from __future__ import annotations

from consilium_chain.errors import ChainError, ChainUnreachable
from consilium_chain.journal import emit
from consilium_chain.ledger import Ledger
from consilium_chain.views import Phase, TaskState
from consilium_zk.errors import ZkError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from consilium_client.errors import ClientError

ROUND_ERRORS = (ClientError, ChainError, ZkError, OSError)  # what may fail of a round, and leaves the node running
LONGEST_WAIT = 60.0  # seconds between two tries of a chain node that does not answer


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
            payout = self._ledger.explain(self._task, self._told + 1, self._ledger.address)
            self._told += 1
            emit(
                "settled", round=self._told, reason=payout.reason.name, reward=str(payout.reward),
                slash=str(payout.slash),
            )  # fmt: skip


def patient_turns() -> Retrying:
    """Calls what it is given until the chain answers."""
    return Retrying(
        retry=retry_if_exception_type(ChainUnreachable),
        wait=wait_random_exponential(max=LONGEST_WAIT),
        before_sleep=_tell_unreachable,
    )


def _tell_unreachable(tried: RetryCallState) -> None:
    emit("chain-unreachable", tries=tried.attempt_number, wait_s=round(tried.upcoming_sleep, 1))
