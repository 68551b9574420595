"""Content-addressed files: task files under their keccak256, blobs under their EIP-4844 versioned hash.

The store needs no trust: whoever reads, checks the bytes against the name that the chain gave. So any number of places
may hold copies, and it does not matter whose they are.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from consilium_core.logs import emit
from consilium_zk.blobs import Blob, parse_blob
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.errors import Malformed
from consilium_zk.kzg import Commitment, commits_to, parse_commitment, versioned_hash
from eth_utils.crypto import keccak

from consilium_chain.artifacts.backends import Fault, Folder, Kind, Mirror, Place, open_place
from consilium_chain.errors import ArtifactCorrupt, ArtifactMissing, NotPossible, StoreMissing, StoreUnwritable

CHECK_BITS = 128  # of a random factor in the check of many blobs at once
BYTES_PER_STORED_BLOB = BYTES_PER_BLOB + 48  # and its commitment
# The largest file that a task can have named is what an accuser shows of 256 hospitals of one cohort and 128 blobs
# each: 6.5 MB (docs/artifacts.md).
MOST_FILE_BYTES = 8 << 20
CACHE = "artifacts"  # below a home: what was fetched from mirrors, each task's in a folder of its own
SILENCE = 60.0  # seconds in which a place that gave no answer is asked last
_NOWHERE = bytes(32)  # no file's keccak256 that anybody knows
_OTHER = Fault(Kind.WRONG, "other bytes")


_Parts = tuple[bytes, bytes]  # what an artifact is: a file and nothing, or a blob and its commitment


@dataclass(frozen=True)
class _Sort:
    """Rules of one kind of artifacts: their names, their longest size, and a check that bytes are what a name says.

    `parse` sees what one of them alone shows, or gives None; `sound` what takes less for many together.
    """

    prefix: str
    limit: int
    parse: Callable[[bytes, bytes], _Parts | None]
    sound: Callable[[Mapping[bytes, _Parts]], set[bytes]]

    def name(self, digest: bytes) -> str:
        return f"{self.prefix}-{digest.hex()}"


def _parse_file(digest: bytes, raw: bytes) -> _Parts | None:
    return (raw, b"") if keccak(raw) == digest else None


def _parse_blob(digest: bytes, raw: bytes) -> _Parts | None:
    try:
        blob, commitment = parse_blob(raw[:BYTES_PER_BLOB]), parse_commitment(raw[BYTES_PER_BLOB:])
    except Malformed:
        return None
    return (blob, commitment) if versioned_hash(commitment) == digest else None


def _sound_blobs(given: Mapping[bytes, _Parts]) -> set[bytes]:
    """All are checked at once (`commits_to`); where that fails, each half is: one bad blob costs a few checks more."""
    if not given:
        return set()
    blobs, commitments = [Blob(blob) for blob, _ in given.values()], [Commitment(point) for _, point in given.values()]
    if commits_to(blobs, commitments, [secrets.randbits(CHECK_BITS) for _ in blobs]):
        return set(given)
    pairs, middle = list(given.items()), len(given) // 2
    return _sound_blobs(dict(pairs[:middle])) | _sound_blobs(dict(pairs[middle:])) if middle else set()


_FILES = _Sort("file", MOST_FILE_BYTES, _parse_file, set)
_BLOBS = _Sort("blob", BYTES_PER_STORED_BLOB, _parse_blob, _sound_blobs)


class ArtifactStore:
    """Artifacts in a folder or several places, asked in order until one gives bytes that hash to the name.

    The first place is the one that is written to. What another had to give is kept in a folder, so that nothing is
    fetched twice, however often a reader is cut off: in the first place or else `cache` for good, or in `passing` for a
    while. Writes are atomic and repeatable.
    """

    def __init__(self, places: Path | Sequence[Place], cache: Path | None = None, passing: Path | None = None) -> None:
        """`passing`: where a reader that writes nothing keeps for a while what mirrors gave, whatever its first place
        is, until `forget`. Raises MirrorUnsupported, ConfigInvalid.
        """
        named = [places] if isinstance(places, Path) else places
        self._places = [open_place(place) for place in named]
        first = self._places[0]
        self._passing = passing
        if passing is not None:
            self._own: Folder | None = Folder(passing, made_when_needed=True)
        elif isinstance(first, Folder):
            self._own = first
        else:
            self._own = None if cache is None else Folder(cache, made_when_needed=True)
        self._asked = self._places if self._own in (first, None) else [self._own, *self._places]
        self._silent_until: dict[Folder | Mirror, float] = {}
        self.not_kept: StoreUnwritable | None = None  # why what was fetched last is not in this store's own folder

    def put_file(self, raw: bytes) -> bytes:
        """Stores a file; returns its keccak256 (32 bytes). Raises ArtifactTooLong, StoreUnwritable."""
        digest = keccak(raw)
        if len(raw) > MOST_FILE_BYTES:
            raise NotPossible("ArtifactTooLong", digest=digest.hex(), size=len(raw), limit=MOST_FILE_BYTES)
        self._put(_FILES.name(digest), raw)
        return digest

    def get_file(self, digest: bytes) -> bytes:
        """Raises ArtifactMissing, ArtifactCorrupt, StoreMissing."""
        return self._get(_FILES, [digest])[digest][0]

    def put_blob(self, blob: Blob, commitment: Commitment) -> bytes:
        """Stores a blob with its commitment, which the caller has computed; returns the versioned hash.

        Raises StoreUnwritable.
        """
        digest = versioned_hash(commitment)
        self._put(_BLOBS.name(digest), blob + commitment)
        return digest

    def get_blobs(self, digests: Sequence[bytes]) -> list[Blob]:
        """The blobs whose KZG commitments have these versioned hashes.

        Raises ArtifactMissing, ArtifactCorrupt, StoreMissing.
        """
        found = self._get(_BLOBS, digests)
        return [Blob(found[digest][0]) for digest in digests]

    def pin(self, files: Sequence[bytes] = (), blobs: Sequence[bytes] = ()) -> list[StoreUnwritable]:
        """Copies artifacts to every mirror that can be written. What failed is told and returned, and can be repeated.

        Raises as reading them does.
        """
        parts = {sort.name(digest): found for sort, digests in ((_FILES, files), (_BLOBS, blobs))
                 for digest, found in self._get(sort, digests).items()}  # fmt: skip
        failed = []
        for place in self._places[1:]:
            try:
                for name, found in parts.items() if place.is_writable else ():
                    place.write(name, b"".join(found))
            except StoreUnwritable as error:
                emit("not-pinned", place=place.shown, error=error.why)
                failed.append(error)
        return failed

    def forget(self) -> None:
        """Deletes what was kept in passing: who wants it again has it from where it came. What cannot be deleted takes
        room, and does no harm.
        """
        if self._passing is not None:
            shutil.rmtree(self._passing, ignore_errors=True)

    @property
    def has_writable_mirrors(self) -> bool:
        """True if `pin` has a backend to write to."""
        return any(place.is_writable for place in self._places[1:])

    def unreachable(self) -> list[str | None]:
        """For each backend the reason why it gives no answer, or None. Asks it for an artifact that nobody has."""
        nothing = [_FILES.name(_NOWHERE)]
        answers = [next(iter(place.read(nothing, MOST_FILE_BYTES))) for place in self._places]
        return [answer.why if isinstance(answer, Fault) and not answer.is_conclusive else None for answer in answers]

    def _put(self, name: str, raw: bytes) -> None:
        self._places[0].write(name, raw)
        if self._own is not self._places[0]:
            self._keep({name: (raw, b"")})

    def _get(self, sort: _Sort, digests: Iterable[bytes]) -> dict[bytes, _Parts]:
        wanted = list(dict.fromkeys(digests))
        found: dict[bytes, _Parts] = {}
        faults: dict[bytes, dict[Folder | Mirror, Fault]] = {digest: {} for digest in wanted}
        for place in self._in_order():
            left = [digest for digest in wanted if digest not in found]
            size = place.at_once or len(left)
            for start in range(0, len(left), max(size, 1)):
                batch = left[start : start + size]
                sound, faulty = self._ask(place, sort, batch)
                found |= sound
                if self._own is not None and place is not self._own and self._is_far(place):
                    self._keep({sort.name(digest): parts for digest, parts in sound.items()})
                for digest, fault in faulty.items():
                    faults[digest][place] = fault
                silent = next((fault for fault in faulty.values() if fault.kind is Kind.SILENT), None)
                if silent is not None:
                    self._silent_until[place] = time.monotonic() + SILENCE
                    for digest in left[start + size :]:
                        faults[digest][place] = silent
                    break
        for digest in wanted:
            if digest not in found:
                raise _unfound(sort.name(digest), faults[digest])
        self._tell(sort, faults)
        return found

    def _is_far(self, place: Folder | Mirror) -> bool:
        """True if its artifacts are worth a copy: a copy of a folder on this machine would take the disk twice."""
        return self._passing is None or not isinstance(place, Folder)

    def _in_order(self) -> list[Folder | Mirror]:
        now = time.monotonic()
        return sorted(self._asked, key=lambda place: self._silent_until.get(place, now) > now)

    def _ask(
        self, place: Folder | Mirror, sort: _Sort, digests: Sequence[bytes]
    ) -> tuple[dict[bytes, _Parts], dict[bytes, Fault]]:
        """Those of these that a backend gives, and the reason why it does not give the rest."""
        given: dict[bytes, _Parts] = {}
        faulty: dict[bytes, Fault] = {}
        answers = place.read([sort.name(digest) for digest in digests], sort.limit)
        for digest, answer in zip(digests, answers, strict=True):
            if isinstance(answer, Fault):
                faulty[digest] = answer
            elif parts := sort.parse(digest, answer):
                given[digest] = parts
            else:
                faulty[digest] = _OTHER
        sound = sort.sound(given)
        return (
            {digest: parts for digest, parts in given.items() if digest in sound},
            faulty | {digest: _OTHER for digest in given if digest not in sound},
        )

    def _keep(self, artifacts: Mapping[str, _Parts]) -> None:
        """A copy that cannot be kept is fetched again when it is needed: no reason to do without it."""
        if self._own is None:
            return
        try:
            for name, parts in artifacts.items():
                self._own.write(name, b"".join(parts))
        except StoreUnwritable as error:
            if self.not_kept is None or self.not_kept.why != error.why:
                emit("not-kept", place=self._own.shown, error=error.why)
            self.not_kept = error

    def _tell(self, sort: _Sort, faults: Mapping[bytes, Mapping[Folder | Mirror, Fault]]) -> None:
        """Tells which backends failed where another had it. A reader's own folder may lack something."""
        told: dict[tuple[Folder | Mirror, str], list[bytes]] = {}
        for digest, by_place in faults.items():
            for place, fault in by_place.items():
                if fault.kind is not Kind.LACKS or place is not self._own:
                    told.setdefault((place, fault.why), []).append(digest)
        for (place, why), digests in told.items():
            name = sort.name(digests[0])
            emit("place-failed", place=place.shown, error=why, artifact=name, artifacts=len(digests))


def _unfound(name: str, faults: Mapping[Folder | Mirror, Fault]) -> ArtifactMissing | ArtifactCorrupt | StoreMissing:
    """Nothing is known while a backend that gave no answer might have it: neither that it is missing, nor corrupt."""
    if unknown := {place: fault for place, fault in faults.items() if not fault.is_conclusive}:
        return StoreMissing(", ".join(f"{place.shown} ({fault.why})" for place, fault in unknown.items()))
    if wrong := [place.shown for place, fault in faults.items() if fault.kind is Kind.WRONG]:
        return ArtifactCorrupt(name, ", ".join(wrong))
    return ArtifactMissing(name, ", ".join(place.shown for place in faults))
