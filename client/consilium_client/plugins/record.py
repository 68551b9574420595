"""A distribution's RECORD in a form that is the same in its wheel and where it is installed. Pure.

A wheel's RECORD lists each file with its SHA-256 and size (the wheel format, PyPA). Installers add files of their own
to it: these are left out, and all others are sorted.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from consilium_client.plugins.errors import PluginError

MOST_BYTES: Final = 1 << 22  # of a RECORD
MOST_FILES: Final = 20_000
# Of the distribution's own folder: RECORD and its signatures, and the installers' notes.
NOTES: Final = frozenset({
    "RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json",
})  # fmt: skip
_FOLDER: Final = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-([0-9A-Za-z.!+_]{1,64})\.dist-info")
_SCRIPT: Final = re.compile(r"(\.\./)+(bin|Scripts)/[\w.-]+")
_HASH: Final = re.compile(r"sha256=([A-Za-z0-9_-]{43})")
_AT_EVERY_START: Final = frozenset({"sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize"})


@dataclass(frozen=True, order=True)
class Listed:
    """`path`: from the folder of all packages, with /. `sha256`: 32 bytes. `size`: bytes."""

    path: str
    sha256: bytes
    size: int


@dataclass(frozen=True)
class Record:
    """`distribution`: its normalised name. `folder`: the one that holds its metadata."""

    distribution: str
    version: str
    folder: str
    files: tuple[Listed, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of a line `path,sha256,size` for each file, in the paths' order, as hexadecimal digits."""
        lines = "".join(f"{one.path},{one.sha256.hex()},{one.size}\n" for one in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()

    @cached_property
    def tops(self) -> frozenset[str]:
        """Packages and modules: the first part of each path, without the folder of metadata."""
        return frozenset(one.path.partition("/")[0] for one in self.files) - {self.folder}

    @cached_property
    def importable(self) -> frozenset[str]:
        """The names by which `tops` are imported."""
        return frozenset(one.partition(".")[0] for one in self.tops)


def normalised(name: str) -> str:
    """A distribution's name as PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_record(raw: bytes, folder: str) -> Record:
    """`folder`: name-version.dist-info. Raises PluginError (PluginMalformed)."""
    named = _FOLDER.fullmatch(folder)
    if named is None:
        raise _malformed(folder[:100], "its folder of metadata has no name and version")
    name = normalised(named[1])
    if len(raw) > MOST_BYTES:
        raise _malformed(name, f"its RECORD has {len(raw):,} bytes, more than {MOST_BYTES:,}")
    try:
        rows = list(csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _malformed(name, f"its RECORD cannot be read ({error})") from None
    if len(rows) > MOST_FILES:
        raise _malformed(name, f"its RECORD lists {len(rows):,} files, more than {MOST_FILES:,}")
    files = [one for row in rows if row and (one := _listed(name, folder, row)) is not None]
    paths = [one.path.casefold() for one in files]
    if len(set(paths)) < len(paths):
        twice = next(one for one in paths if paths.count(one) > 1)
        raise _malformed(name, f"its RECORD lists {twice} twice")
    found = Record(name, named[2], folder, tuple(sorted(files)))
    if not found.tops:
        raise _malformed(name, "its RECORD lists no package or module")
    return found


def _listed(name: str, folder: str, row: list[str]) -> Listed | None:
    """None for a file that an installer adds or writes anew."""
    if len(row) != 3:
        raise _malformed(name, f"a line of its RECORD has {len(row)} fields, not 3")
    path, hash_, size = row
    if _SCRIPT.fullmatch(path):
        return None
    _require_inside(name, folder, path)
    parts = path.split("/")
    if parts[0] == folder and len(parts) == 2 and parts[1] in NOTES:
        return None
    if "__pycache__" in parts:
        if path.endswith(".pyc"):
            return None  # never read
        raise _malformed(name, f"its RECORD lists {path}, which is no compiled file")
    found = _HASH.fullmatch(hash_)
    if found is None or not re.fullmatch(r"[0-9]{1,15}", size):
        raise _malformed(name, f"its RECORD has no SHA-256 and size of {path}")
    return Listed(path, urlsafe_b64decode(found[1] + "="), int(size))


def _require_inside(name: str, folder: str, path: str) -> None:
    parts = path.split("/")
    if not path.isprintable() or len(path) > 500 or "\\" in path or ":" in path or {"", ".", ".."} & set(parts):
        raise _malformed(name, f"its RECORD lists the path {path[:100]!r}, which leads out of its packages")
    top = parts[0]
    if (len(parts) == 1 and path.endswith(".pth")) or top in _AT_EVERY_START:
        raise _malformed(name, f"its RECORD lists {path}, which every Python process runs as it starts")
    if top != folder and top.endswith((".dist-info", ".egg-info", ".data")):
        raise _malformed(name, f"its RECORD lists {path}, which is no part of its packages")


def _malformed(name: str, why: str) -> PluginError:
    return PluginError("PluginMalformed", plugin=name, why=why)
