"""Copies what the chain names of a round to the artifact store's mirrors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from consilium_chain.artifacts.public_record import shown_uploads
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import ArtifactCorrupt, ArtifactMissing, ChainError, StoreMissing
from consilium_core.logs import emit

from consilium_server.jobs.due import RoundArtifacts

TOGETHER = 64  # blobs that are in memory at once
UNREADABLE = (ArtifactMissing, ArtifactCorrupt, StoreMissing)


def pin(store: ArtifactStore, named: RoundArtifacts) -> int:
    """Copies all that can be read to all mirrors that can be written; returns how many artifacts. Raises the first of
    what went wrong, ArtifactMissing, ArtifactCorrupt, StoreMissing or StoreUnwritable, once the rest is copied.
    """
    faults: list[ChainError] = []
    files = list(named.files)
    for digest in named.evidence:
        try:
            files += shown_uploads(store.get_file(digest))
        except UNREADABLE:  # told below
            continue
    count = 0
    for digest in dict.fromkeys(files):
        count += _pin(store, [digest], [], faults)
    for batch in _batches(list(dict.fromkeys(named.blobs))):
        try:
            count += _pin(store, [], batch, faults, whole=True)
        except UNREADABLE:
            count += sum(_pin(store, [], [digest], faults) for digest in batch)
    if faults:
        raise faults[0]
    emit("pinned", artifacts=count)
    return count


def _pin(
    store: ArtifactStore, files: Sequence[bytes], blobs: Sequence[bytes], faults: list[ChainError], whole: bool = False
) -> int:
    """`whole`: raises where one of them cannot be read."""
    try:
        failed = store.pin(files, blobs)
    except UNREADABLE as error:
        if whole:
            raise
        faults.append(error)
        return 0
    faults += failed
    return 0 if failed else len(files) + len(blobs)


def _batches(digests: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (digests[start : start + TOGETHER] for start in range(0, len(digests), TOGETHER))
