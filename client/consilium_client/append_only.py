"""Append-only files of JSON objects, one a line. Processes can share them, and a crash does not damage them.

Lines never change. The next line replaces an incomplete last line, which a crash left. Each process locks the file
while it uses it.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from consilium_core.private_files import sync_folder
from pydantic import BaseModel, ValidationError

from consilium_client.errors import ClientError

Line = TypeVar("Line", bound=BaseModel)


@dataclass
class OpenLines(Generic[Line]):
    """A file's complete lines, while this process holds its lock. `end`: their size in bytes."""

    path: Path
    file: int
    lines: list[Line]
    end: int

    def append(self, line: Line) -> None:
        """On disk once `sync` returns. Raises OSError."""
        raw = line.model_dump_json(exclude_none=True).encode() + b"\n"
        os.ftruncate(self.file, self.end)
        if (written := os.write(self.file, raw)) != len(raw):
            raise OSError(errno.ENOSPC, f"it took {written} of {len(raw)} bytes", str(self.path))
        self.lines.append(line)
        self.end += len(raw)

    def sync(self) -> None:
        """Brings all lines to disk, also those of another process that crashed before. Raises OSError."""
        os.fsync(self.file)
        sync_folder(self.path.parent)


class AppendOnly(Generic[Line]):
    """A file of lines of one `kind`, readable by its owner alone. A malformed line raises `error` with `fault`."""

    def __init__(self, path: Path, kind: type[Line], error: type[ClientError], fault: str) -> None:
        self.path, self._kind, self._error, self._fault = path, kind, error, fault
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextmanager
    def open(self) -> Iterator[OpenLines[Line]]:
        """Raises OSError, or the error about a malformed line."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed, or its process is gone
            yield self._read(file)
        finally:
            os.close(file)

    def malformed(self, line: int) -> ClientError:
        """The error about a line by its number, from 1."""
        return self._error(self._fault, path=self.path, line=line)

    def _read(self, file: int) -> OpenLines[Line]:
        raw = os.pread(file, os.fstat(file).st_size, 0)
        end = raw.rfind(b"\n") + 1
        lines: list[Line] = []
        for number, line in enumerate(raw[:end].splitlines(), start=1):
            try:
                lines.append(self._kind.model_validate_json(line))
            except ValidationError:  # unchained: it quotes the line
                raise self.malformed(number) from None
        return OpenLines(self.path, file, lines, end)
