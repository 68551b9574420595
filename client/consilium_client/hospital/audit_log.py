"""A hospital's audit log: one JSON line for each message that left its node, chained by hashes; and a signed export.
Lines also name the counts of rows that a summary gives, and the header fields by which the read files can identify
patients, and which stay there.

Each line has the SHA-256 of the line before it, with its newline. So nobody can change, remove or move a line without
changing all later ones. The export's last line signs their number and the last hash. A line never has the content of a
message, only its receiver, size and SHA-256. It is on disk before the message leaves. After a crash, a line may be
there for a message that did not leave, but never the reverse.
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
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from consilium_core.private_files import sync_folder
from eth_account import Account
from eth_account.messages import SignableMessage, encode_defunct
from eth_account.signers.local import LocalAccount
from eth_keys.exceptions import BadSignature
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from consilium_client.errors import AuditError

if TYPE_CHECKING:
    from consilium_client.second_signature import SignedApproval

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
        """The only accepted form in the file."""
        return self.model_dump_json().encode() + b"\n"


class _Entry(_Line):
    """`seq` counts from 1, as lines do; `at` is Unix seconds, this machine's; `previous` is a line's SHA-256."""

    seq: Annotated[int, Field(ge=1)]
    at: Annotated[int, Field(ge=0, lt=1 << 37)]
    previous: Digest


class _Left(_Entry):
    """The receiver (a URL without its secrets, or host:port), the size of the message, and its SHA-256."""

    to: Text
    bytes: Count
    sha256: Digest


class Trial(_Left):
    """Calldata sent to a chain node to try a call, before the transaction."""

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
    """A request to a sponsor. `contract` is the hospital's own account, which makes the calls."""

    kind: Literal["batch"]
    call: Text
    contract: Text
    calldata: Digest


class Reply(_Left):
    """A frame that the relay forwards to the SuperLink. `upload`: SHA-256 of its concatenated blobs, the digest in a
    masked upload's signed statement.
    """

    kind: Literal["reply"]
    code: Text
    contract: Text
    task: Count
    round: Count
    blobs: Count
    upload: Digest


class Shared(_Left):
    """A signed report of a task's model on this hospital's held-out rows. `to`: the path of a file for others, or the
    address at an operator's API.
    """

    kind: Literal["evaluation"]
    contract: Text
    task: Count


class Recovered(_Entry):
    """A crash cut a line off, before its message left. The log no longer has the incomplete line."""

    kind: Literal["recovered"]
    bytes: Count
    sha256: Digest


class Identifying(_Entry):
    """The node has read examples whose files' headers can identify patients. These fields stayed there: `fields` are
    their standard names, separated by commas, and `files` is the number of files that have the most frequent one.
    """

    kind: Literal["identifying"]
    fields: Annotated[str, Field(max_length=LONGEST_LINE // 4, pattern="^[A-Za-z, ]+$")]
    files: Count


class Counted(_Entry):
    """Round 0 of the task gives so many counts of this hospital's rows, within the reply that follows. `variance`: of
    the noise on each; 0 for exact counts.
    """

    kind: Literal["counted"]
    task: Count
    counts: Count
    variance: Count


class Approved(_Entry):
    """The node starts on a task under this policy, with another account's signature (`second_signature`)."""

    kind: Literal["approved"]
    contract: Text
    task: Count
    spec: Hash
    policy: Hash
    date: Text
    signer: Text
    signature: Annotated[str, Field(max_length=LONGEST_LINE // 2, pattern="^0x[0-9a-f]+$")]


Kind = Trial | Transaction | Batch | Reply | Shared | Recovered | Identifying | Counted | Approved
Entry = Annotated[Kind, Field(discriminator="kind")]
_ENTRY: TypeAdapter[Kind] = TypeAdapter(Entry)


class Seal(_Line):
    """An export's last line: hospital, deployment, and the signature on the number of lines and the last hash."""

    kind: Literal["signed"]
    chain_id: Count
    contract: Text
    count: Count
    head: Digest
    hospital: Text
    signature: Annotated[str, Field(pattern="^0x[0-9a-f]{130}$")]


_SEAL = TypeAdapter(Seal)
LineType = TypeVar("LineType", bound=_Line)


@dataclass(frozen=True)
class Export:
    """A checked export: `seal.hospital` signed its entries."""

    entries: Sequence[Entry]
    seal: Seal


# Reading: pure


def parse_log(raw: bytes) -> list[Entry]:
    """A whole log. Raises AuditMalformed, AuditBroken."""
    entries = []
    previous = FIRST
    for number, line in enumerate(_lines(raw), start=1):
        entry = _parsed(_ENTRY, number, line)
        if (entry.seq, entry.previous) != (number, previous):
            raise AuditError("AuditBroken", line=number)
        entries.append(entry)
        previous = digest(line)
    return entries


def parse_export(raw: bytes) -> Export:
    """Raises AuditMalformed, AuditBroken, AuditForged."""
    *lines, last = _lines(raw) or [b""]
    number = len(lines) + 1
    seal = _parsed(_SEAL, number, last, "the file does not end with the hospital's signature")
    entries = parse_log(b"".join(lines))
    head = digest(lines[-1]) if lines else FIRST
    if (seal.count, seal.head) != (len(lines), head):
        why = f"the signature covers {seal.count} entries with head {seal.head}, but the file has {len(lines)}"
        raise AuditError("AuditForged", why=why)
    message = _statement(seal.chain_id, seal.contract, seal.count, seal.head)
    try:
        signer = Account.recover_message(message, signature=seal.signature)
    except (BadSignature, ValueError) as error:
        raise AuditError("AuditForged", why="the signature in the last line is not valid") from error
    if signer != seal.hospital:
        raise AuditError("AuditForged", why=f"the signature is not from {seal.hospital}, which the last line names")
    return Export(entries, seal)


def require_extends(newer: Export, older: Export) -> None:
    """Raises AuditRewritten unless the newer export of a log begins with all entries of the older one."""
    if newer.seal.hospital != older.seal.hospital:
        why = f"it is from {newer.seal.hospital}, but the older one is from {older.seal.hospital}"
        raise AuditError("AuditRewritten", why=why)
    for number, entry in enumerate(older.entries):
        if number >= len(newer.entries) or newer.entries[number] != entry:
            raise AuditError("AuditRewritten", why=f"entry {number + 1} of the older one is missing or different")


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
    """EIP-191, in words, for a person who sees it before signing."""
    text = f"Consilium audit log, version 1\nchain {chain_id}\ncontract {contract}\nentries {count}\nhead {head}"
    return encode_defunct(text=text)


def _lines(raw: bytes) -> list[bytes]:
    """Lines with their newlines. Raises AuditMalformed if the last one lacks it."""
    *lines, rest = raw.split(b"\n")
    if rest:
        raise AuditError("AuditMalformed", line=len(lines) + 1, why="it ends without a newline")
    return [line + b"\n" for line in lines]


def _parsed(
    kind: TypeAdapter[LineType], number: int, line: bytes, why: str = "it is not an entry of an audit log"
) -> LineType:
    try:
        parsed = kind.validate_json(line)
    except ValidationError as error:
        raise AuditError("AuditMalformed", line=number, why=why) from error
    if parsed.line() != line:
        raise AuditError("AuditMalformed", line=number, why="this program writes it in another form")
    return parsed


# Writing


class AuditLog:
    """A log on disk, readable by its owner alone. Several processes may write it, each under a lock."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Creates or continues the file. Raises AuditMalformed, AuditBroken, AuditUnwritable."""
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

    def identifying(self, fields: Mapping[str, int]) -> None:
        """`fields`: the number of files by a field's name. Raises as `record` does."""
        self.record("identifying", fields=", ".join(sorted(fields)), files=max(fields.values()))

    def counted(self, task: int, counts: int, variance: int) -> None:
        """The summary of a task. Raises as `record` does."""
        self.record("counted", task=task, counts=counts, variance=variance)

    def approved(self, contract: str, task: int, signed: SignedApproval) -> None:
        """Raises as `record` does."""
        of = signed.statement
        self.record(
            "approved", contract=contract, task=task, spec=of.spec, policy=of.policy, date=of.date,
            signer=signed.signer, signature=signed.signature,
        )  # fmt: skip

    def record(self, kind: str, **fields: str | int) -> None:
        """Adds an entry, on disk on return. Raises AuditUnwritable, AuditMalformed; then nothing may leave."""
        with self._locked() as file:
            self._recover(file)
            self._append(file, kind, fields)

    @contextmanager
    def _locked(self, flags: int = 0) -> Iterator[int]:
        """Opens the file each time: then threads exclude each other as processes do, and a removed file is noticed."""
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
        values = {"seq": seq + 1, "at": int(self._clock()), "previous": previous, "kind": kind, **fields}
        rest = _ENTRY.validate_python(values).line()
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)  # needs no space; if this fails, too, the next record recovers
            raise

    def _recover(self, file: int) -> None:
        """Removes an incomplete last line after a crash, and records that."""
        size = os.fstat(file).st_size
        tail = _read(file, max(0, size - LONGEST_LINE))
        torn = tail[tail.rfind(b"\n") + 1 :]
        if len(torn) == LONGEST_LINE:
            raise AuditError(
                "AuditMalformed", line=_read(file, 0).count(b"\n") + 1, why="it is longer than an entry can be"
            )
        if torn:
            os.ftruncate(file, size - len(torn))
            self._append(file, "recovered", {"bytes": len(torn), "sha256": digest(torn)})


def read_log(path: Path) -> bytes:
    """A log's complete lines, also while a node writes it. Raises AuditUnreadable."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            raw = file.read()
    except OSError as error:
        raise AuditError("AuditUnreadable", path=path, why=error.strerror or type(error).__name__) from error
    return raw[: raw.rfind(b"\n") + 1]


def _last(file: int) -> tuple[int, str]:
    """Number and hash of the complete last line. Raises AuditMalformed."""
    tail = _read(file, max(0, os.fstat(file).st_size - LONGEST_LINE))
    line = tail[tail.rfind(b"\n", 0, -1) + 1 :]
    try:
        return _parsed(_ENTRY, 0, line).seq, digest(line)
    except AuditError as error:
        raise AuditError("AuditMalformed", line=_read(file, 0).count(b"\n"), why=error.values["why"]) from error


def _read(file: int, start: int) -> bytes:
    """From `start` to the end."""
    return os.pread(file, os.fstat(file).st_size - start, start)
