"""A hospital's memory of its own updates, from round to round of one task: it never leaves the hospital.

Control variates need the hospital's own mean gradient, error feedback the part of its update that was not sent, and
local tensors their values. A summary's counts are kept with their noise: a second draw would show more of the counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from consilium_core.private_files import write_private_file
from numpy.typing import NDArray

from consilium_client.errors import NodeError

KEPT: Final = 2  # rounds: the latest may have to be made again, from the one before
FORMATS: Final[Mapping[str, np.dtype[Any]]] = {
    "variate": np.dtype("<f8"),
    "unsent": np.dtype("<i8"),
    "local": np.dtype("<f4"),
    "summary": np.dtype("<i8"),
}


class Memory(ABC):
    """`kind`: one of FORMATS. Each vector has k values, and belongs to a round."""

    @abstractmethod
    def keep(self, kind: str, round_: int, values: NDArray[Any]) -> None:
        """Keeps it, instead of an earlier one of the round; only the latest two remain."""

    @abstractmethod
    def recall(self, kind: str, before: int, size: int) -> tuple[int, NDArray[Any]] | None:
        """The latest from before this round, and its round; None if there is none. Raises MemoryDamaged."""


class InProcess(Memory):
    def __init__(self) -> None:
        self._kept: dict[str, dict[int, NDArray[Any]]] = {kind: {} for kind in FORMATS}

    def keep(self, kind: str, round_: int, values: NDArray[Any]) -> None:
        own = self._kept[kind]
        own[round_] = values.astype(FORMATS[kind])
        for old in sorted(own)[:-KEPT]:
            del own[old]

    def recall(self, kind: str, before: int, size: int) -> tuple[int, NDArray[Any]] | None:
        return max(((at, values) for at, values in self._kept[kind].items() if at < before), default=None, key=_round)


class OnDisk(Memory):
    """In files of the home that only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, kind: str, round_: int, values: NDArray[Any]) -> None:
        write_private_file(self._file(kind, round_), values.astype(FORMATS[kind]).tobytes())
        for old in self._rounds(kind)[:-KEPT]:
            self._file(kind, old).unlink()

    def recall(self, kind: str, before: int, size: int) -> tuple[int, NDArray[Any]] | None:
        rounds = [at for at in self._rounds(kind) if at < before]
        if not rounds:
            return None
        path = self._file(kind, rounds[-1])
        raw = path.read_bytes()
        if len(raw) != size * FORMATS[kind].itemsize:
            raise NodeError("MemoryDamaged", path=path, bytes=len(raw), expected=size * FORMATS[kind].itemsize)
        return rounds[-1], np.frombuffer(raw, FORMATS[kind])

    def forget(self) -> None:
        """Deletes its files, once the task has ended."""
        for kind in FORMATS:
            for old in self._rounds(kind):
                self._file(kind, old).unlink()

    def _rounds(self, kind: str) -> list[int]:
        found = self._folder.glob(f"{kind}-*")
        return sorted(int(path.name.removeprefix(f"{kind}-")) for path in found if path.suffix == "")

    def _file(self, kind: str, round_: int) -> Path:
        return self._folder / f"{kind}-{round_}"


def _round(pair: tuple[int, NDArray[Any]]) -> int:
    return pair[0]
