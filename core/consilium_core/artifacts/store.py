"""A content-addressed store in several locations, none of which is trusted.

A reader checks the bytes against the name that it asked for. So any number of locations may hold copies, and it does
not matter who runs them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from consilium_core.artifacts.backends import Fault, Folder, Kind, Location, Mirror, open_location
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, StoreMissing, StoreUnwritable
from consilium_core.logs import emit
from consilium_core.tracing import span

SILENCE = 60.0  # seconds in which a location that did not answer is asked last
PROBE, PROBE_BYTES = "file-" + 64 * "0", 1 << 20  # nobody knows a file with this hash
_OTHER = Fault(Kind.WRONG, "other bytes")


@dataclass(frozen=True)
class ArtifactType:
    """Rules of one type of artifacts: names, the longest size, and a check of the bytes against the name.

    `matches` checks one artifact against its digest. `sound` makes the checks that cost less for many together, and
    returns the digests of those that pass.
    """

    prefix: str
    limit: int
    matches: Callable[[bytes, bytes], bool]
    sound: Callable[[Mapping[bytes, bytes]], set[bytes]]

    def name(self, digest: bytes) -> str:
        return f"{self.prefix}-{digest.hex()}"


class ContentStore:
    """Artifacts in a folder or several locations, asked in order until one gives bytes that hash to the name.

    Writes go to the first location. They are atomic and repeatable. A copy of each fetched artifact stays in a folder,
    so that nothing is fetched twice: for good in the first location or `cache`, or in `passing` until `forget`.
    """

    def __init__(
        self, locations: Path | Sequence[Location], cache: Path | None = None, passing: Path | None = None
    ) -> None:
        """`passing`: the folder for copies of a reader that writes nothing. Raises MirrorUnsupported, ConfigInvalid."""
        named = [locations] if isinstance(locations, Path) else locations
        self._locations = [open_location(location) for location in named]
        first = self._locations[0]
        self._passing = passing
        if passing is not None:
            self._own: Folder | None = Folder(passing, made_when_needed=True)
        elif isinstance(first, Folder):
            self._own = first
        else:
            self._own = None if cache is None else Folder(cache, made_when_needed=True)
        self._sources = self._locations if self._own in (first, None) else [self._own, *self._locations]
        self._silent_until: dict[Folder | Mirror, float] = {}
        self.not_kept: StoreUnwritable | None = None  # why the last fetched artifact is not kept

    def put(self, name: str, raw: bytes) -> None:
        """Raises StoreUnwritable."""
        with span("store put", bytes=len(raw)):
            self._locations[0].write(name, raw)
        if self._own is not self._locations[0]:
            self._keep({name: raw})

    def copy_to_mirrors(self, artifacts: Mapping[str, bytes]) -> list[StoreUnwritable]:
        """Copies artifacts, by name, to every mirror that takes files. Logs and returns the failures: try again."""
        failed = []
        for location in self._locations[1:]:
            try:
                for name, raw in artifacts.items() if location.is_writable else ():
                    location.write(name, raw)
            except StoreUnwritable as error:
                emit("not-pinned", place=location.shown, error=error.why)
                failed.append(error)
        return failed

    def forget(self) -> None:
        """Deletes the copies in `passing`. A copy that cannot be deleted takes room, and does no harm."""
        if self._passing is not None:
            shutil.rmtree(self._passing, ignore_errors=True)

    @property
    def has_writable_mirrors(self) -> bool:
        """True if `copy_to_mirrors` has a location to write to."""
        return any(location.is_writable for location in self._locations[1:])

    def unreachable(self) -> list[str | None]:
        """For each location the reason why it does not answer, or None. Asks it for a file that does not exist."""
        answers = [next(iter(location.read([PROBE], PROBE_BYTES))) for location in self._locations]
        return [answer.why if isinstance(answer, Fault) and not answer.is_conclusive else None for answer in answers]

    def get(self, type_: ArtifactType, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """Raises ArtifactMissing, ArtifactCorrupt, StoreMissing."""
        wanted = list(dict.fromkeys(digests))
        with span("store get", artifacts=len(wanted)):
            return self._found(type_, wanted)

    def _found(self, type_: ArtifactType, wanted: Sequence[bytes]) -> dict[bytes, bytes]:
        """Raises as `get`."""
        found: dict[bytes, bytes] = {}
        faults: dict[bytes, dict[Folder | Mirror, Fault]] = {digest: {} for digest in wanted}
        for location in self._in_order():
            left = [digest for digest in wanted if digest not in found]
            size = location.at_once or len(left)
            for start in range(0, len(left), max(size, 1)):
                batch = left[start : start + size]
                sound, faulty = self._read(location, type_, batch)
                found |= sound
                if self._own is not None and location is not self._own and self._is_far(location):
                    self._keep({type_.name(digest): raw for digest, raw in sound.items()})
                for digest, fault in faulty.items():
                    faults[digest][location] = fault
                silent = next((fault for fault in faulty.values() if fault.kind is Kind.SILENT), None)
                if silent is not None:
                    self._silent_until[location] = time.monotonic() + SILENCE
                    for digest in left[start + size :]:
                        faults[digest][location] = silent
                    break
        for digest in wanted:
            if digest not in found:
                raise _not_found(type_.name(digest), faults[digest])
        self._log_failures(type_, faults)
        return found

    def _is_far(self, location: Folder | Mirror) -> bool:
        """True if copies of its artifacts are worth it: those of a folder on this machine would take the disk twice."""
        return self._passing is None or not isinstance(location, Folder)

    def _in_order(self) -> list[Folder | Mirror]:
        now = time.monotonic()
        return sorted(self._sources, key=lambda location: self._silent_until.get(location, now) > now)

    def _read(
        self, location: Folder | Mirror, type_: ArtifactType, digests: Sequence[bytes]
    ) -> tuple[dict[bytes, bytes], dict[bytes, Fault]]:
        """The artifacts that a location gives, and for each other one the reason why not."""
        given: dict[bytes, bytes] = {}
        faulty: dict[bytes, Fault] = {}
        answers = location.read([type_.name(digest) for digest in digests], type_.limit)
        for digest, answer in zip(digests, answers, strict=True):
            if isinstance(answer, Fault):
                faulty[digest] = answer
            elif type_.matches(digest, answer):
                given[digest] = answer
            else:
                faulty[digest] = _OTHER
        sound = type_.sound(given)
        return (
            {digest: raw for digest, raw in given.items() if digest in sound},
            faulty | {digest: _OTHER for digest in given if digest not in sound},
        )

    def _keep(self, artifacts: Mapping[str, bytes]) -> None:
        """Logs a copy that cannot be kept. It is fetched again when it is needed."""
        if self._own is None:
            return
        try:
            for name, raw in artifacts.items():
                self._own.write(name, raw)
        except StoreUnwritable as error:
            if self.not_kept is None or self.not_kept.why != error.why:
                emit("not-kept", place=self._own.shown, error=error.why)
            self.not_kept = error

    def _log_failures(self, type_: ArtifactType, faults: Mapping[bytes, Mapping[Folder | Mirror, Fault]]) -> None:
        """Logs the locations that failed where another had the artifact. A reader's own folder may lack artifacts."""
        failed: dict[tuple[Folder | Mirror, str], list[bytes]] = {}
        for digest, by_location in faults.items():
            for location, fault in by_location.items():
                if fault.kind is not Kind.LACKS or location is not self._own:
                    failed.setdefault((location, fault.why), []).append(digest)
        for (location, why), digests in failed.items():
            name = type_.name(digests[0])
            emit("place-failed", place=location.shown, error=why, artifact=name, artifacts=len(digests))


def _not_found(name: str, faults: Mapping[Folder | Mirror, Fault]) -> ArtifactMissing | ArtifactCorrupt | StoreMissing:
    """While a location that does not answer might have it, the artifact is neither missing nor corrupt."""
    if unknown := {location: fault for location, fault in faults.items() if not fault.is_conclusive}:
        return StoreMissing(", ".join(f"{location.shown} ({fault.why})" for location, fault in unknown.items()))
    if wrong := [location.shown for location, fault in faults.items() if fault.kind is Kind.WRONG]:
        return ArtifactCorrupt(name, ", ".join(wrong))
    return ArtifactMissing(name, ", ".join(location.shown for location in faults))
