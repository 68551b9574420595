"""The plug-ins that are installed here, by their metadata and files alone: none of their code is imported."""

from __future__ import annotations

import configparser
import hashlib
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from consilium_chain.tasks.plugin_specs import Group, NamedPlugin
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_client.plugins.errors import PluginError
from consilium_client.plugins.record import MOST_BYTES, NOTES, Listed, Record, normalised, parse_record

# Groups of entry points.
GROUPS: Final[Mapping[str, Group]] = {
    "consilium.models": "models", "consilium.metrics": "metrics", "consilium.readers": "readers",
}  # fmt: skip
# Of a zip file that is damaged, or made to be.
_DAMAGES: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, RuntimeError, NotImplementedError,
    LookupError, OSError,
)  # fmt: skip
_AT_ONCE: Final = 1 << 20  # bytes
_OBJECT: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """An entry point. `value`: module:object."""

    group: Group
    value: str


@dataclass(frozen=True)
class Installed:
    """`root`: the folder of all packages. `entries`: by their names, which the groups share."""

    root: Path
    record: Record
    entries: Mapping[str, Entry]

    @property
    def in_words(self) -> str:
        return f"{self.record.distribution} {self.record.version}"


def all_installed() -> Iterator[Installed | PluginError]:
    """Each distribution with plug-ins, once, by its name; an error for one that cannot be used."""
    found: dict[str, Installed | PluginError] = {}
    for folder in _metadata():
        try:
            if not GROUPS.keys() & _sections(folder).keys():
                continue
            one = _read(folder)
        except PluginError as error:
            found.setdefault(folder.name, error)
            continue
        found.setdefault(one.record.distribution, one)
    yield from (one for _, one in sorted(found.items()))


def find(distribution: str) -> Installed:
    """Raises PluginError (PluginMissing, PluginMalformed)."""
    wanted = normalised(distribution)
    folders = [one for one in _metadata() if normalised(one.name.partition("-")[0]) == wanted]
    if not folders:
        raise PluginError("PluginMissing", plugin=wanted, found="")
    if len(folders) > 1:
        paths = " and ".join(f"{one}" for one in folders[:2])
        raise PluginError("PluginMalformed", plugin=wanted, why=f"it is installed twice, in {paths}: remove one")
    return _read(folders[0])


def plugins_of(spec: TaskSpec) -> list[NamedPlugin]:
    """Those that a task names: its model, its metric and its reader of data."""
    named = (spec.model, spec.judging.plugin, spec.data.reader)
    return [one for one in named if isinstance(one, NamedPlugin)]


def verified(spec: NamedPlugin) -> Installed:
    """The plug-in that a task names, with each file as its RECORD has it.

    Raises PluginError (PluginMissing, PluginOther, PluginAltered, PluginMalformed).
    """
    try:
        found = find(spec.distribution)
    except PluginError as error:
        if error.name != "PluginMissing":
            raise
        raise PluginError("PluginMissing", plugin=spec.in_words, found="") from None
    if found.record.version != spec.version:
        raise PluginError("PluginMissing", plugin=spec.in_words, found=f", but {found.record.version} is")
    if found.record.digest != spec.record:
        raise PluginError("PluginOther", plugin=spec.in_words, found=found.record.digest, expected=spec.record)
    if spec.entry not in found.entries or found.entries[spec.entry].group != spec.group:
        raise PluginError("PluginMalformed", plugin=spec.in_words, why=f"it has no {spec.thing} {spec.entry}")
    require_intact(found)
    return found


def require_intact(found: Installed) -> None:
    """Raises PluginError (PluginAltered) unless its files are those of its RECORD, with nothing beside them."""
    record, root = found.record, found.root
    for one in record.files:
        path = root / one.path
        try:
            if not _is(path, one):
                raise _altered(found, f"{one.path} is another file")
        except OSError as error:
            raise _altered(found, f"{one.path} cannot be read ({error.strerror})") from None
    listed = {one.path for one in record.files} | {f"{record.folder}/{note}" for note in NOTES}
    for name in sorted(os.listdir(root)):
        is_own = name in record.tops or name == record.folder
        if is_own:
            _require_listed(found, root / name, listed)
        elif name.partition(".")[0] in record.importable and (root / name).suffix != ".dist-info":
            raise _altered(found, f"{name} takes the name of one of its modules")


def digest_of_wheel(path: Path) -> Record:
    """The RECORD of a wheel's file. Raises PluginError (PluginMalformed), OSError."""
    name = path.name[:100]
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as wheel:
                return _record_of(wheel, name)
        except _DAMAGES as error:
            raise PluginError("PluginMalformed", plugin=name, why=f"it is no wheel ({type(error).__name__})") from None


def _record_of(wheel: zipfile.ZipFile, name: str) -> Record:
    records = [one for one in wheel.infolist() if re.fullmatch(r"[^/]+\.dist-info/RECORD", one.filename)]
    if len(records) != 1 or records[0].file_size > MOST_BYTES:
        raise PluginError("PluginMalformed", plugin=name, why="it has no RECORD, or no fit one")
    found = parse_record(wheel.read(records[0]), records[0].filename.partition("/")[0])
    files = [one for one in wheel.infolist() if not one.is_dir()]
    sizes = {one.filename: one.file_size for one in files}
    if len(sizes) < len(files):
        raise PluginError("PluginMalformed", plugin=name, why="it has two files of one name")
    listed = {one.path for one in found.files}
    if unlisted := sizes.keys() - listed - {f"{found.folder}/{note}" for note in NOTES}:
        raise PluginError("PluginMalformed", plugin=name, why=f"its RECORD does not list {min(unlisted)[:100]}")
    for one in found.files:
        is_same = sizes.get(one.path) == one.size
        if is_same:
            with wheel.open(one.path) as file:
                is_same = _sha256(file) == one.sha256
        if not is_same:
            raise PluginError("PluginMalformed", plugin=name, why=f"{one.path} is not as its RECORD says")
    return found


def _metadata() -> Iterator[Path]:
    """Folders of metadata on the path, each once."""
    seen = set()
    for entry in sys.path:
        root = Path(entry or ".").resolve()
        try:
            names = [] if root in seen else os.listdir(root)
        except OSError:  # no folder, or none that a plug-in's process may read
            names = []
        seen.add(root)
        yield from (root / name for name in sorted(names) if name.endswith(".dist-info"))


def _read(folder: Path) -> Installed:
    name = folder.name[:100]
    try:
        with (folder / "RECORD").open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise PluginError("PluginMalformed", plugin=name, why=f"it has no RECORD ({error.strerror})") from None
    record = parse_record(raw, folder.name)
    entries: dict[str, Entry] = {}
    for group, values in _sections(folder).items():
        for entry, value in values.items() if group in GROUPS else ():
            named = _OBJECT.fullmatch(value)
            if named is None or named[1].partition(".")[0] not in record.importable:
                why = f"its entry point {entry[:64]} is not module:object of its own packages"
                raise PluginError("PluginMalformed", plugin=record.distribution, why=why)
            if entry in entries:
                why = f"it has two entry points of the name {entry[:64]}"
                raise PluginError("PluginMalformed", plugin=record.distribution, why=why)
            entries[entry] = Entry(GROUPS[group], value)
    return Installed(folder.parent, record, entries)


def _sections(folder: Path) -> dict[str, dict[str, str]]:
    """Of entry_points.txt: names and objects of each group; empty if there is none that can be read."""
    parser = configparser.RawConfigParser(delimiters=("=",), strict=True)
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # names keep their letters' case
    try:
        parser.read_string((folder / "entry_points.txt").read_text("utf-8"))
    except (OSError, ValueError, configparser.Error):
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}


def _require_listed(found: Installed, path: Path, listed: set[str]) -> None:
    if not path.is_dir() or path.is_symlink():
        return  # a module, whose hash is known
    for folder, folders, files in os.walk(path):
        of_root = Path(folder).relative_to(found.root)
        for name in (*folders, *files):
            at = of_root / name
            if (found.root / at).is_symlink():
                raise _altered(found, f"{at} is a link")
        for name in files:
            is_compiled = of_root.name == "__pycache__" and name.endswith(".pyc")
            if (of_root / name).as_posix() not in listed and not is_compiled:
                raise _altered(found, f"{of_root / name} is not listed there")


def _sha256(file: IO[bytes]) -> bytes:
    found = hashlib.sha256()
    while part := file.read(_AT_ONCE):
        found.update(part)
    return found.digest()


def _is(path: Path, one: Listed) -> bool:
    """Raises OSError."""
    if path.is_symlink() or path.stat().st_size != one.size:
        return False
    with path.open("rb") as file:
        return _sha256(file) == one.sha256


def _altered(found: Installed, why: str) -> PluginError:
    return PluginError("PluginAltered", plugin=found.in_words, why=why)
