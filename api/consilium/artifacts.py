"""Copies of tasks' published artifacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium.sources import open_chain, open_store

if TYPE_CHECKING:
    from consilium_chain.artifacts.copying import ArtifactsFound


def fetch_artifacts(
    task: int,
    to: str | Path,
    *,
    sources: Sequence[str | Path],
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
    on_progress: Callable[[int, int], None] = lambda sound, wanted: None,
) -> ArtifactsFound:
    """Copies and checks all artifacts of a task that the chain names. A second call continues. `sources`: folders and
    URLs. `faults` has an error for each artifact that no source gives.

    Raises Refused (TaskUnknown), ChainUnreachable, DeploymentInvalid, ConfigInvalid, StoreUnwritable, StoreMissing.
    """
    from consilium_chain.artifacts.copying import copy_task

    folder = Path(to)
    store = open_store([folder, *sources])
    return copy_task(open_chain(rpc, address_book), task, store, folder, on_progress)


def check_artifacts(folder: str | Path) -> ArtifactsFound:
    """Checks every artifact of a folder: its name is the hash of its bytes. `faults` has an error for each other one.

    Raises StoreMissing if the folder cannot be read.
    """
    from consilium_chain.artifacts.copying import check_folder

    return check_folder(Path(folder))


def store_weights(
    file: str | Path,
    *,
    artifacts: Sequence[str | Path],
    keystore: str | Path | None = None,
    password_file: str | Path | None = None,
) -> str:
    """Puts a safetensors file into the first location of a store, in parts. Returns the section `[start]` of a task
    file that starts from it. Of the folder that `export` wrote, it stores all files, and returns the section `[model]`;
    with a key file, its author's account signs the program, so that policies can allow all of this author's.

    Raises OSError, ConfigInvalid, MirrorUnsupported, StoreUnwritable, KeystoreError, ProgramError, OperatorError
    (WeightsTooLong, ProgramFolderInvalid).
    """
    from consilium_chain.deploying.faucet import given_account
    from consilium_operators.weights import store_weights

    author = None
    if keystore is not None or password_file is not None:
        key, password = (None if one is None else Path(one) for one in (keystore, password_file))
        author = given_account("author's account", key, password, is_local=False)
    return store_weights(open_store(artifacts), Path(file), author)
