"""The retry policy for faults that may pass: a chain node that does not answer, an account that lacks ether."""

from __future__ import annotations

from consilium_core.logs import emit
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from consilium_chain.errors import ChainError, ChainUnreachable, EtherMissing, TransactionRejected, name_of

LONGEST_WAIT = 60.0  # seconds between two tries


def retry_policy(
    errors: tuple[type[ChainError], ...] = (ChainUnreachable,), longest_wait: float = LONGEST_WAIT
) -> Retrying:
    """Calls a function until it raises none of these errors, and logs each."""
    return Retrying(
        retry=retry_if_exception_type(errors),
        wait=wait_random_exponential(max=longest_wait),
        before_sleep=_log,
    )


def _log(tried: RetryCallState) -> None:
    """Without the chain node's text."""
    error = tried.outcome.exception() if tried.outcome is not None else None
    tries, wait_s = tried.attempt_number, round(tried.upcoming_sleep, 1)
    match error:
        case EtherMissing():
            emit(
                "no-ether", call=error.call, account=error.account, wei=str(error.balance), missing=str(error.missing),
                tries=tries, wait_s=wait_s,
            )  # fmt: skip
        case TransactionRejected():
            emit(
                "transaction-rejected", call=error.call, account=error.account, error=name_of(error), tries=tries,
                wait_s=wait_s,
            )  # fmt: skip
        case _:
            emit("chain-unreachable", tries=tries, wait_s=wait_s)
