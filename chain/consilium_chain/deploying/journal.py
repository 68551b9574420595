"""The transactions of a deployment so far, kept beside the address book, so that one that was cut off goes on.

A step is written down with its nonce before it is sent. A chain carries out one transaction of a nonce at most, and
a created contract's address follows from creator and nonce: sent again under that nonce, nothing is deployed twice.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from eth_utils.crypto import keccak
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from consilium_chain.errors import DeployFailed

HexText = Annotated[str, Field(pattern=r"^0x([0-9a-fA-F]{2})*$")]


class Step(BaseModel):
    """A transaction as it was signed last; `payload` is the keccak256 of its data."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    nonce: Annotated[int, Field(ge=0)]
    transaction: HexText
    payload: HexText
    address: HexText | None = None
    block: int | None = None


class Record(BaseModel):
    """The journal's content."""

    model_config = ConfigDict(extra="forbid", strict=True)

    chain_id: int
    genesis: HexText
    deployer: HexText
    first_block: Annotated[int, Field(ge=0)]
    steps: dict[str, Step] = {}


class Journal:
    """A record and the file that holds it."""

    def __init__(self, path: Path, record: Record) -> None:
        self.path, self.record = path, record

    def step(self, name: str, data: bytes) -> Step | None:
        """A step that was sent earlier. Raises DeployFailed (JournalStale) if it was with other data."""
        found = self.record.steps.get(name)
        if found is not None and found.payload != fingerprint(data):
            raise DeployFailed(
                "JournalStale",
                why=f"{name} was sent with other code or terms than those of now ({self.path}): go back to the version"
                " and networks file that it was begun with",
            )
        return found

    def write_down(self, name: str, step: Step) -> None:
        """On disk when this returns."""
        self.record.steps[name] = step
        draft = self.path.with_name(self.path.name + ".draft")
        with draft.open("w") as file:
            file.write(self.record.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)


def fingerprint(data: bytes) -> str:
    """keccak256, as hex."""
    return "0x" + keccak(data).hex()


def journal_path(book: Path) -> Path:
    return book.with_name(f"{book.stem}.journal.json")


def open_journal(path: Path, fresh: Record) -> Journal:
    """The journal at a path, or a `fresh` one, which no file holds yet. Raises DeployFailed (JournalInvalid,
    JournalStale).
    """
    try:
        record = Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Journal(path, fresh)
    except OSError as error:
        raise DeployFailed("JournalInvalid", path=path, why=f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        why = f"is malformed ({error.error_count()} faults): restore it, or move it away to deploy everything anew"
        raise DeployFailed("JournalInvalid", path=path, why=why) from error
    for what, was, now in (
        ("chain", record.chain_id, fresh.chain_id),
        ("first block", record.genesis, fresh.genesis),
        ("deployer", record.deployer, fresh.deployer),
    ):
        if was != now:
            raise DeployFailed(
                "JournalStale",
                why=f"{path} is of another {what} ({was}, now {now}): use that one, or pass another --address-book; for"
                " a local chain that was started anew, delete the journal and its address book",
            )
    return Journal(path, record)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One deployment at a time writes into a folder. Raises DeployFailed (DeploymentRunning)."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DeployFailed("DeploymentRunning", folder=folder) from error
        yield
    finally:
        os.close(handle)
