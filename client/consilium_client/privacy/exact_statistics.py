"""The record of exact statistics: the rows in a hospital's exact sums, on its own disk, across restarts, tasks and
contracts.

The difference between two sums over nearly the same rows shows the rows that differ. So if rows overlap an earlier set,
their sums leave only if both sets are equal. Rows are kept as keyed hashes (HMAC-SHA-256, with the key in another
file), which are useless without the key. A set is on disk before the commitment to its sums.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, KeystoreError, StoreMissing
from consilium_core.private_files import read_private_file, write_private_file
from pydantic import BaseModel, ConfigDict, Field

from consilium_client.append_only import AppendOnly, OpenLines
from consilium_client.data.examples import Examples
from consilium_client.errors import ClientError

KEY_BYTES, TAG_BYTES = 32, 16

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Tag = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class Given(BaseModel):
    """One task's set of rows. `task`: `Ledger.folder_name`.

    `encoding`: hash of the schema's part that turns rows into numbers. `whole`: hash of all rows exactly, in any order.
    `rows`: hash of each row, as coarse as `Examples.contents`, so that another file format hides no row; empty if an
    earlier line has the same `whole`. `labelled`: hash of all rows with their answers, if the task counts these.
    `bins`: of the histograms, if the task has a summary.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    task: str
    encoding: Digest
    whole: Digest
    rows: tuple[Tag, ...]
    labelled: Digest | None = None
    bins: Annotated[int, Field(ge=1)] | None = None


class ExactStatisticsRecord:
    """All methods raise OSError; and ClientError (StatisticsLedgerInvalid, StatisticsKeyLost) or KeystoreError if the
    files were damaged."""

    def __init__(self, path: Path) -> None:
        self._file = AppendOnly(path, Given, ClientError, "StatisticsLedgerInvalid")
        self._key_file = path.with_suffix(".key")

    def tasks(self) -> set[str]:
        """The tasks with exact statistics."""
        with self._file.open() as opened:
            return {one.task for one in opened.lines}

    def require_givable(
        self, task: str, examples: Examples, schema: DataSchema, with_answers: bool = False, bins: int | None = None
    ) -> None:
        """Raises StatisticsOverlap or StatisticsUncomparable if `give` would."""
        with self._file.open() as opened:
            _require_new(opened.lines, given_of(task, examples, schema, self._key(opened), with_answers, bins))

    def give(
        self, task: str, examples: Examples, schema: DataSchema, with_answers: bool = False, bins: int | None = None
    ) -> None:
        """Records on disk that the sums of these rows leave; `with_answers`: and how many rows have each answer;
        `bins`: and histograms with so many parts.

        Raises StatisticsOverlap if some but not all of them were counted before, StatisticsUncomparable if earlier rows
        were counted under another schema. Then it writes nothing.
        """
        with self._file.open() as opened:
            new = given_of(task, examples, schema, self._key(opened), with_answers, bins)
            known = _require_new(opened.lines, new)
            written = [(one.task, one.whole, one.labelled, one.bins) for one in opened.lines]
            if (new.task, new.whole, new.labelled, new.bins) not in written:
                opened.append(new.model_copy(update={"rows": ()}) if known else new)
            opened.sync()

    def require_complete(self, ledger: Ledger, store: ArtifactStore) -> None:
        """Raises StatisticsUnknown if the chain has exact statistics of this account that this record lacks: the file
        was restored from an older copy, or was lost."""
        known = self.tasks()
        for task, round_ in ledger.record.rounds_committed(ledger.address):
            task_key = ledger.folder_name(task)
            if round_ == STATISTICS_ROUND and task_key not in known and _may_be_exact(ledger, store, task):
                raise ClientError("StatisticsUnknown", path=self._file.path, task=task_key)

    def _key(self, opened: OpenLines[Given]) -> bytes:
        """Creates the key at the first use of the list."""
        if not self._key_file.exists():
            if opened.lines:
                raise ClientError("StatisticsKeyLost", key=self._key_file, path=opened.path)
            write_private_file(self._key_file, secrets.token_hex(KEY_BYTES))
        try:
            key = bytes.fromhex(read_private_file(self._key_file))
        except ValueError:  # which would quote it
            key = b""
        if len(key) != KEY_BYTES:
            raise KeystoreError(
                f"{self._key_file} must contain {2 * KEY_BYTES} hexadecimal digits; restore it from a backup"
            )
        return key


def given_of(
    task: str, examples: Examples, schema: DataSchema, key: bytes, with_answers: bool = False, bins: int | None = None
) -> Given:
    encoding = hashlib.sha256(schema.row_encoding).digest()

    def tag(what: bytes, of: bytes) -> bytes:
        return hmac.digest(key, what + encoding + of, "sha256")

    def whole(what: bytes, of: Iterable[bytes]) -> str:
        return tag(what, b"".join(sorted(of))).hex()

    labels = zip(examples.row_bytes(), examples.label_bytes, strict=True)
    bare = (tag(b"exact", row[len(label) :]) for row, label in labels)  # labels are not in features' sums
    labelled = whole(b"labelled", (tag(b"exact", row) for row in examples.row_bytes())) if with_answers else None
    rows = sorted(tag(b"row", row)[:TAG_BYTES].hex() for row in examples.contents())
    return Given(
        task=task, encoding=encoding.hex(), whole=whole(b"whole", bare), rows=tuple(rows), labelled=labelled, bins=bins
    )


def _require_new(earlier: Sequence[Given], new: Given) -> bool:
    """True if the same set was counted before: then its sums show nothing new."""
    if same := [one for one in earlier if one.whole == new.whole]:
        for one in same:
            apart = ""
            if one.labelled and new.labelled and one.labelled != new.labelled:  # the counts' difference shows which
                apart = "the answers of some rows differ"
            elif one.bins and new.bins and one.bins != new.bins:  # together they have more and finer parts
                apart = f"its histograms have {one.bins} parts, not {new.bins}"
            if apart:
                raise ClientError("StatisticsOverlap", task=one.task, shared=len(new.rows), differing=0, apart=apart)
        return True
    for one in earlier:
        if one.encoding != new.encoding:
            raise ClientError("StatisticsUncomparable", task=one.task)
        shared = (Counter(one.rows) & Counter(new.rows)).total()
        if shared:
            differing = len(one.rows) + len(new.rows) - 2 * shared
            apart = f"{differing:,} row(s) are in only one set" if differing else "some have slightly other values"
            raise ClientError("StatisticsOverlap", task=one.task, shared=shared, differing=differing, apart=apart)
    return False


def _may_be_exact(ledger: Ledger, store: ArtifactStore, task: int) -> bool:
    try:
        return parse_task_spec(store.get_file(ledger.tasks.params(task).spec_hash)).counts_exactly
    except (ArtifactMissing, ArtifactCorrupt, StoreMissing, SpecInvalid):
        return True
