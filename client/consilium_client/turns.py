"""What nodes share that look at the chain again and again: what of a round may fail, and how long they wait."""

from __future__ import annotations

from consilium_chain.errors import ChainError, ChainUnreachable
from consilium_chain.journal import emit
from consilium_zk.errors import ZkError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from consilium_client.errors import ClientError

ROUND_ERRORS = (ClientError, ChainError, ZkError, OSError)  # what may fail of a round, and leaves the node running
LONGEST_WAIT = 60.0  # seconds between two tries of a chain node that does not answer


def patient_turns() -> Retrying:
    """Calls what it is given until the chain answers."""
    return Retrying(
        retry=retry_if_exception_type(ChainUnreachable),
        wait=wait_random_exponential(max=LONGEST_WAIT),
        before_sleep=_tell_unreachable,
    )


def _tell_unreachable(tried: RetryCallState) -> None:
    emit("chain-unreachable", tries=tried.attempt_number, wait_s=round(tried.upcoming_sleep, 1))
