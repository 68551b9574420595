"""The journal of a deployment's transactions, beside the address book, so that an interrupted deployment can continue.

A step is recorded with its nonce before it is sent. A chain carries out at most one transaction of a nonce, and a
contract's address follows from its creator and the nonce: a step sent again deploys nothing twice.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

from consilium_core.locks import alone
from consilium_core.private_files import write_whole
from eth_utils.crypto import keccak
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from consilium_chain.errors import DeployFailed

HexText = Annotated[str, Field(pattern=r"^0x([0-9a-fA-F]{2})*$")]


class Step(BaseModel):
    """A transaction as it was last signed. `payload`: the keccak256 of its data."""

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
        """The step of an earlier run, if any. Raises DeployFailed (JournalStale) if its data was different."""
        found = self.record.steps.get(name)
        if found is not None and found.payload != fingerprint(data):
            raise DeployFailed(
                "JournalStale",
                why=f"{self.path} has {name} with other code or terms; use the version and the networks file"
                " of the first run",
            )
        return found

    def write_down(self, name: str, step: Step) -> None:
        """On disk when this returns."""
        self.record.steps[name] = step
        write_whole(self.path, self.record.model_dump_json(indent=2) + "\n")


def fingerprint(data: bytes) -> str:
    """keccak256, as hex."""
    return "0x" + keccak(data).hex()


def journal_path(book: Path) -> Path:
    return book.with_name(f"{book.stem}.journal.json")


def open_journal(path: Path, fresh: Record) -> Journal:
    """The journal at a path, else a `fresh` one without a file. Raises DeployFailed (JournalInvalid, JournalStale)."""
    try:
        record = Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Journal(path, fresh)
    except OSError as error:
        raise DeployFailed("JournalInvalid", path=path, why=f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        why = f"is malformed ({error.error_count()} faults); restore it, or move it away to deploy everything anew"
        raise DeployFailed("JournalInvalid", path=path, why=why) from error
    for what, was, now in (
        ("chain", record.chain_id, fresh.chain_id),
        ("first block", record.genesis, fresh.genesis),
        ("deployer", record.deployer, fresh.deployer),
    ):
        if was != now:
            raise DeployFailed(
                "JournalStale",
                why=f"{path} is of another {what} ({was}, now {now}); use that one, or pass another --address-book; if"
                " the local chain was started anew, delete the journal and its address book",
            )
    return Journal(path, record)


def locked(folder: Path) -> AbstractContextManager[None]:
    """One deployment at a time writes to a folder. Raises DeployFailed (DeploymentRunning)."""
    folder.mkdir(parents=True, exist_ok=True)
    return alone(folder, DeployFailed("DeploymentRunning", folder=folder))
