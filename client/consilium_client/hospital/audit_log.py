"""A hospital's audit log: what left its node, one JSON line each, chained by hashes; and an export that its key signs.

A line holds the SHA-256 of the line before it, newline included, so that no line can be changed, left out or moved
without all later ones; the export's last line signs how many there are and the last one's hash. Lines never hold what
left, only to whom, how many bytes and their SHA-256. A line is on disk before its bytes leave: a crash can leave a line
for what did not leave, never the reverse.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from consilium_chain.keystore import sync_folder
from eth_account import Account
from eth_account.messages import SignableMessage, encode_defunct
from eth_account.signers.local import LocalAccount
from eth_keys.exceptions import BadSignature
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from consilium_client.errors import AuditError

AUDIT_FILE = "audit.jsonl"  # in a node's home
FIRST = hashlib.sha256(b"CONSILIUM-V1-AUDIT-LOG").hexdigest()  # stands in the first line instead of a line's hash
LONGEST_LINE = 1 << 14  # bytes

Count = Annotated[int, Field(ge=0, lt=1 << 64)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Hash = Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
Text = Annotated[str, Field(max_length=500, pattern=r"^\P{C}*$")]  # printable: it ends up on screens


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    def line(self) -> bytes:
        """The one way in which it is written."""
        return self.model_dump_json().encode() + b"\n"


class _Entry(_Line):
    """`seq` counts from 1, as lines do; `at` is Unix seconds, this machine's; `previous` is a line's SHA-256."""

    seq: Annotated[int, Field(ge=1)]
    at: Annotated[int, Field(ge=0, lt=1 << 37)]
    previous: Digest


class _Left(_Entry):
    """To whom (a URL without its secrets, or host:port) how many bytes left, and their SHA-256."""

    to: Text
    bytes: Count
    sha256: Digest


class Trial(_Left):
    """Calldata that a chain node was asked about, before the transaction with it."""

    kind: Literal["trial"]
    call: Text
    contract: Text


class Transaction(_Left):
    """A signed transaction: its calldata's SHA-256, and its hash as explorers show it."""

    kind: Literal["transaction"]
    call: Text
    contract: Text
    calldata: Digest
    transaction: Hash


class Batch(_Left):
    """A request that a sponsor carries out: `contract` is the hospital's own account, which makes the calls."""

    kind: Literal["batch"]
    call: Text
    contract: Text
    calldata: Digest


class Reply(_Left):
    """A frame for the relay, which passes it on to the SuperLink. `upload` is the SHA-256 of its blobs, one after
    another: the digest that a masked upload's signed statement holds.
    """

    kind: Literal["reply"]
    code: Text
    contract: Text
    task: Count
    round: Count
    blobs: Count
    upload: Digest


class Recovered(_Entry):
    """The beginning of a line that a crash cut off: nothing of it had left. Its bytes are no longer in the log."""

    kind: Literal["recovered"]
    bytes: Count
    sha256: Digest


Entry = Annotated[Trial | Transaction | Batch | Reply | Recovered, Field(discriminator="kind")]
_ENTRY: TypeAdapter[Trial | Transaction | Batch | Reply | Recovered] = TypeAdapter(Entry)


class Seal(_Line):
    """An export's last line: whose log it is, in which deployment, and the hospital's signature on its end."""

    kind: Literal["signed"]
    chain_id: Count
    contract: Text
    count: Count
    head: Digest
    hospital: Text
    signature: Annotated[str, Field(pattern="^0x[0-9a-f]{130}$")]


@dataclass(frozen=True)
class Export:
    """An export that holds: its entries are those that `seal.hospital` signed."""

    entries: Sequence[Entry]
    seal: Seal


# Reading: pure


def parse_log(raw: bytes) -> list[Entry]:
    """A whole log. Raises AuditMalformed, AuditBroken."""
    entries = []
    previous = FIRST
    for number, line in enumerate(_lines(raw), start=1):
        entry = _parsed(number, line)
        if (entry.seq, entry.previous) != (number, previous):
            raise AuditError("AuditBroken", line=number)
        entries.append(entry)
        previous = digest(line)
    return entries


def parse_export(raw: bytes) -> Export:
    """Raises AuditMalformed, AuditBroken, AuditForged."""
    *lines, last = _lines(raw) or [b""]
    number = len(lines) + 1
    try:
        seal = Seal.model_validate_json(last)
    except ValidationError as error:
        raise AuditError(
            "AuditMalformed", line=number, why="the file does not end with the hospital's signature"
        ) from error
    _require_canonical(number, last, seal)
    entries = parse_log(b"".join(lines))
    head = digest(lines[-1]) if lines else FIRST
    if (seal.count, seal.head) != (len(lines), head):
        raise AuditError(
            "AuditForged",
            why=f"the signature is on {seal.count} entries with head {seal.head}, the file has {len(lines)}",
        )
    message = _statement(seal.chain_id, seal.contract, seal.count, seal.head)
    try:
        signer = Account.recover_message(message, signature=seal.signature)
    except (BadSignature, ValueError) as error:
        raise AuditError("AuditForged", why="the last line's signature is none") from error
    if signer != seal.hospital:
        raise AuditError("AuditForged", why=f"the signature is not of {seal.hospital}, whose log this is said to be")
    return Export(entries, seal)


def require_extends(newer: Export, older: Export) -> None:
    """Raises AuditRewritten where the newer export of a log does not begin with all of the older one's entries."""
    if newer.seal.hospital != older.seal.hospital:
        raise AuditError(
            "AuditRewritten", why=f"it is of {newer.seal.hospital}, the older one of {older.seal.hospital}"
        )
    for number, entry in enumerate(older.entries):
        if number >= len(newer.entries) or newer.entries[number] != entry:
            raise AuditError("AuditRewritten", why=f"entry {number + 1} of the older one is not in it")


def export(raw: bytes, account: LocalAccount, chain_id: int, contract: str) -> bytes:
    """A log, and the account's signature on it. Raises AuditMalformed, AuditBroken."""
    entries = parse_log(raw)
    head = digest(_lines(raw)[-1]) if entries else FIRST
    signed = account.sign_message(_statement(chain_id, contract, len(entries), head))
    seal = Seal(
        kind="signed", chain_id=chain_id, contract=contract, count=len(entries), head=head, hospital=account.address,
        signature="0x" + bytes(signed.signature).hex(),
    )  # fmt: skip
    return raw + seal.line()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _statement(chain_id: int, contract: str, count: int, head: str) -> SignableMessage:
    """EIP-191, in words, for whoever sees it before signing."""
    said = f"Consilium audit log, version 1\nchain {chain_id}\ncontract {contract}\nentries {count}\nhead {head}"
    return encode_defunct(text=said)


def _lines(raw: bytes) -> list[bytes]:
    """With their newlines. Raises AuditMalformed where the last one has none."""
    *lines, rest = raw.split(b"\n")
    if rest:
        raise AuditError("AuditMalformed", line=len(lines) + 1, why="it ends without a newline")
    return [line + b"\n" for line in lines]


def _parsed(number: int, line: bytes) -> Entry:
    try:
        entry = _ENTRY.validate_json(line)
    except ValidationError as error:
        raise AuditError("AuditMalformed", line=number, why="it is no entry of an audit log") from error
    _require_canonical(number, line, entry)
    return entry


def _require_canonical(number: int, line: bytes, parsed: _Line) -> None:
    if parsed.line() != line:
        raise AuditError("AuditMalformed", line=number, why="it is not written as this program writes it")


# Writing


class AuditLog:
    """A log on disk, readable by its owner alone. Several processes may write it: each holds a lock while it does."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Makes the file, or goes on with it. Raises AuditMalformed, AuditBroken, AuditUnwritable."""
        self._path, self._clock = path, clock
        with self._locked(os.O_CREAT) as file:
            os.fchmod(file, 0o600)
            self._recover(file)
            parse_log(_read(file, 0))
            os.fsync(file)
            sync_folder(path.parent)

    def leaving(self, kind: str, to: str, content: bytes, **what: str | int) -> None:
        """As `consilium_chain.rpc.connection.Witness`."""
        self.record(kind, to=to, bytes=len(content), sha256=digest(content), **what)

    def record(self, kind: str, **fields: str | int) -> None:
        """Adds an entry, which is on disk on return. Raises AuditUnwritable, AuditMalformed: then nothing may leave."""
        with self._locked() as file:
            self._recover(file)
            self._append(file, kind, fields)

    @contextmanager
    def _locked(self, flags: int = 0) -> Iterator[int]:
        """Opened anew each time: threads shut each other out as processes do, and a file that is gone is missed."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_APPEND | flags, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise AuditError("AuditUnwritable", path=self._path, why=error.strerror or type(error).__name__) from error

    def _append(self, file: int, kind: str, fields: Mapping[str, str | int]) -> None:
        size = os.fstat(file).st_size
        seq, previous = _last(file) if size else (0, FIRST)
        said = {"seq": seq + 1, "at": int(self._clock()), "previous": previous, "kind": kind, **fields}
        rest = _ENTRY.validate_python(said).line()
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)  # takes no room; where this fails, too, the next record recovers
            raise

    def _recover(self, file: int) -> None:
        """Cuts off a line that a crash has torn, and says so."""
        size = os.fstat(file).st_size
        tail = _read(file, max(0, size - LONGEST_LINE))
        torn = tail[tail.rfind(b"\n") + 1 :]
        if len(torn) == LONGEST_LINE:
            raise AuditError("AuditMalformed", line=_read(file, 0).count(b"\n") + 1, why="it is longer than any entry")
        if torn:
            os.ftruncate(file, size - len(torn))
            self._append(file, "recovered", {"bytes": len(torn), "sha256": digest(torn)})


def read_log(path: Path) -> bytes:
    """A log's whole lines, also while a node writes it. Raises AuditUnreadable."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            raw = file.read()
    except OSError as error:
        raise AuditError("AuditUnreadable", path=path, why=error.strerror or type(error).__name__) from error
    return raw[: raw.rfind(b"\n") + 1]


def _last(file: int) -> tuple[int, str]:
    """Number and hash of the last line, which is whole. Raises AuditMalformed where it is no entry."""
    tail = _read(file, max(0, os.fstat(file).st_size - LONGEST_LINE))
    line = tail[tail.rfind(b"\n", 0, -1) + 1 :]
    try:
        return _parsed(0, line).seq, digest(line)
    except AuditError as error:
        raise AuditError("AuditMalformed", line=_read(file, 0).count(b"\n"), why=error.values["why"]) from error


def _read(file: int, start: int) -> bytes:
    """From `start` to the end."""
    return os.pread(file, os.fstat(file).st_size - start, start)
