"""Leaves this process only folders of code to read, by the kernel's Landlock (Linux 5.13).

Landlock holds the calling thread and those that it starts later. So it begins before any library has threads.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import struct
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from consilium_client.programs.confinement import is_held_by_calls, take_no_privileges
from consilium_client.programs.errors import ProgramError

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on all machines
_VERSION, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many of them a version knows
_SOCKETS, _SCOPES = 0b11, 0b11  # binding and connecting TCP; abstract sockets, and signals
_OF_NETWORK, _OF_SCOPES = 4, 6  # versions that know them
# Of the system: libraries, and what these read of the machine.
SYSTEM: Final = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/dev/urandom", "/dev/null",
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system",
)  # fmt: skip
OWN: Final = ("consilium_core", "consilium_zk", "consilium_chain", "consilium_client")


def readable() -> set[Path]:
    """The system's libraries, Python's own, folders that installers write packages into, and this project's code."""
    paths = sysconfig.get_paths()
    found = {Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found |= {Path(sys.base_exec_prefix) / "lib", *map(Path, SYSTEM)}
    found |= {Path(entry) for entry in sys.path if entry and any(Path(entry).glob("*.dist-info"))}
    for name in OWN:
        spec = importlib.util.find_spec(name)
        found |= set(map(Path, (spec and spec.submodule_search_locations) or ()))
    return {path for path in found if path.exists()}


def require_linux() -> None:
    """Raises ProgramError (NotConfined) on other systems: nothing keeps files from a plug-in there."""
    if not is_held_by_calls():
        raise _not("only Linux keeps files from a plug-in")


def read_only(paths: set[Path]) -> None:
    """From now on this process may open these files, and those in these folders, to read them, and no others.

    Raises ProgramError (NotConfined).
    """
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise _not("its libraries have threads already")
    version = _call(_CREATE, None, 0, _VERSION)
    if version < 1:
        raise _not(f"the kernel has no Landlock, which keeps files from a plug-in ({os.strerror(ctypes.get_errno())})")
    rights = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    fields = [rights]
    fields += [_SOCKETS] if version >= _OF_NETWORK else []
    fields += [_SCOPES] if version >= _OF_SCOPES else []
    rules = struct.pack(f"<{len(fields)}Q", *fields)
    into = _call(_CREATE, rules, len(rules), 0)
    _require(into >= 0, "landlock_create_ruleset")
    for path in _outermost(paths):
        at = os.open(path, os.O_PATH)
        allowed = _READ_FILE | (_READ_FOLDER if path.is_dir() else 0)
        rule = struct.pack("<Qi", allowed, at)
        _require(_call(_ADD, into, _PATH_BENEATH, rule, 0) == 0, f"landlock_add_rule of {path}")
        os.close(at)
    take_no_privileges()
    _require(_call(_RESTRICT, into, 0) == 0, "landlock_restrict_self")
    os.close(into)


def _outermost(paths: set[Path]) -> Iterator[Path]:
    resolved = {path.resolve() for path in paths}
    return (path for path in sorted(resolved) if not resolved & set(path.parents))


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))


def _require(is_done: bool, call: str) -> None:
    if not is_done:
        raise _not(f"{call} failed: {os.strerror(ctypes.get_errno())}")


def _not(why: str) -> ProgramError:
    return ProgramError("NotConfined", why=why)
