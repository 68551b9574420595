"""Copies and checks the artifacts of a task, or of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, StoreMissing, StoreUnwritable

from consilium_chain.artifacts.public_record import artifacts_of, named_files, shown_uploads
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger

BATCH = 64  # blobs read and checked at once, few enough for a small memory
ArtifactFault = ArtifactCorrupt | ArtifactMissing | StoreMissing
_NAME = re.compile(r"(file|blob)-([0-9a-f]{64})")
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class ArtifactsFound:
    """`sound`: the number of good ones of all `wanted`. `faults`: the errors of the others."""

    sound: int
    wanted: int
    faults: tuple[ArtifactFault, ...]


def copy_task(
    ledger: Ledger,
    task: int,
    store: ArtifactStore,
    to: Path,
    on_progress: Callable[[int, int], None] = lambda sound, wanted: None,
) -> ArtifactsFound:
    """Copies all artifacts of a task that the chain names. `to`: the folder in the first location of the store.

    Raises Refused (TaskUnknown), ChainUnreachable, StoreUnwritable, and StoreMissing if no location answers.
    """
    named = artifacts_of(ledger, task)
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnwritable(str(to), error.strerror or type(error).__name__) from error
    reading, files = _Reading(store), dict.fromkeys(named.files)
    for digest in named.files:
        found = reading.file(digest)
        if found is not None and digest in named.evidence:
            files |= dict.fromkeys(shown_uploads(found))
        if found is not None and digest == named.files[0]:
            files |= dict.fromkeys(named_files(found))
        on_progress(reading.sound, len(files) + len(named.blobs))
    wanted = len(files) + len(named.blobs)
    for digest in list(files)[len(named.files) :]:
        reading.file(digest)
        on_progress(reading.sound, wanted)
    for batch in _batches(named.blobs):
        reading.blobs(batch)
        on_progress(reading.sound, wanted)
    if store.not_kept is not None:
        raise store.not_kept
    return ArtifactsFound(reading.sound, wanted, tuple(reading.faults))


def check_folder(folder: Path) -> ArtifactsFound:
    """Reads every artifact of a folder: its name is the hash of its bytes."""
    reading = _Reading(ArtifactStore(folder))
    names = sorted(match.groups() for path in folder.iterdir() if (match := _NAME.fullmatch(path.name)))
    for kind, digest in names:
        if kind == "file":
            reading.file(bytes.fromhex(digest))
    for batch in _batches([bytes.fromhex(digest) for kind, digest in names if kind == "blob"]):
        reading.blobs(batch)
    return ArtifactsFound(reading.sound, len(names), tuple(reading.faults))


@dataclass
class _Reading:
    store: ArtifactStore
    sound: int = 0
    faults: list[ArtifactFault] = field(default_factory=list)

    def file(self, digest: bytes) -> bytes | None:
        """Raises StoreMissing if no back end answers: no other artifact can be read either."""
        return self._try(lambda: self.store.get_file(digest), self.faults)

    def blobs(self, digests: Sequence[bytes]) -> None:
        """Reads them together, and one by one if that fails. Raises as `file` does."""
        if self._try(lambda: self.store.get_blobs(digests), [], len(digests)) is None:
            for digest in digests:
                self._try(partial(self.store.get_blobs, [digest]), self.faults)

    def _try(self, read: Callable[[], _Read], faults: list[ArtifactFault], count: int = 1) -> _Read | None:
        try:
            found = read()
        except (ArtifactCorrupt, ArtifactMissing, StoreMissing) as error:
            if isinstance(error, StoreMissing):
                own, *mirrors = self.store.unreachable()
                if None not in (mirrors or [own]):
                    raise
            faults.append(error)
            return None
        self.sound += count
        return found


def _batches(blobs: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (blobs[start : start + BATCH] for start in range(0, len(blobs), BATCH))
