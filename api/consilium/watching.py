"""A task as it goes on: its events and its state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium.sources import open_chain, open_store

if TYPE_CHECKING:
    from consilium_operators.watching import SeenEvent, TaskStatus


def watch(
    task: int,
    *,
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
    mlflow: str | None = None,
    tensorboard: str | Path | None = None,
    artifacts: Sequence[str | Path] = (),
) -> Iterator[SeenEvent]:
    """A task's events, each once and in order, from its proposal until it has ended. Waits for the next ones.

    `mlflow`: URL of a server, and `tensorboard`: a folder; they get a point of each round, and with `artifacts` at the
    end the model and its proof. A second call doubles no point.

    Raises Refused (TaskUnknown), ChainUnreachable, DeploymentInvalid, OperatorError (TrackingFailed, NotVerified).
    """
    from consilium_operators.watching import watch

    ledger = open_chain(rpc, address_book)
    if mlflow is None and tensorboard is None:
        return watch(ledger, task)
    from consilium_operators.tracking.trackers import open_tracking

    folder, store = None if tensorboard is None else Path(tensorboard), open_store(artifacts) if artifacts else None
    return watch(ledger, task, open_tracking(ledger, task, mlflow, folder, store))


def status(task: int, *, rpc: str = LOCAL_RPC, address_book: str | Path = LOCAL_ADDRESS_BOOK) -> TaskStatus:
    """A task's phase, parties, pool and finished rounds.

    Raises Refused (TaskUnknown), ChainUnreachable, DeploymentInvalid.
    """
    from consilium_operators.watching import status

    return status(open_chain(rpc, address_book), task)
