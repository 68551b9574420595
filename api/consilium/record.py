"""A task's public record: checks of it, and the model that follows from it. Needs no account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

if TYPE_CHECKING:
    from consilium_operators.model_folder import ModelFile
    from consilium_verify.report import Report


def verify(
    task: int,
    round_: int | None = None,
    *,
    artifacts: Sequence[str],
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
) -> Report:
    """Checks a round from the chain and the artifacts alone; by default the last settled one, 0 for the statistics.

    `artifacts`: folders and URLs of stores, the first that answers. `.holds` is False if a check fails.

    Raises RecordIncomplete, Refused, ChainUnreachable, DeploymentInvalid.
    """
    from consilium_chain.artifacts.store import ArtifactStore
    from consilium_core.artifacts.backends import parse_places
    from consilium_verify.verification import reader, verify_round

    store = ArtifactStore(parse_places(artifacts))
    return verify_round(reader(rpc, Path(address_book)), store, task, round_)


def download_model(
    task: int,
    output: str | Path,
    *,
    artifacts: Sequence[str],
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
    unverified: bool = False,
    on_report: Callable[[Report], None] = lambda report: None,
) -> ModelFile:
    """Derives a task's model from the record, checks every round, and writes it with its proof into a new folder.
    `on_report` is called with each round's report.

    Raises OperatorError (OutputTaken, NotVerified), RecordIncomplete, Refused, ChainUnreachable, DeploymentInvalid.
    """
    from consilium_chain.artifacts.store import ArtifactStore
    from consilium_core.artifacts.backends import parse_places
    from consilium_operators.download import Options, download
    from consilium_verify.verification import reader

    store = ArtifactStore(parse_places(artifacts))
    return download(reader(rpc, Path(address_book)), store, task, Path(output), Options(unverified), on_report)
