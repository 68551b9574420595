"""Runs a step of an installation: its commands, then the file that marks its end. Needs Python 3.11 alone.

    run_step.py TARGET [OPTIONS] (--do COMMAND... | --try NOTICE COMMAND...)...

    --of FILES            what TARGET is made from, with spaces between
    --says TEXT           printed before the first command
    --holds TEXT          content of TARGET, where it is a stamp; without, the commands write TARGET
    --venv FOLDER         a virtual environment that is made first, or again if it is broken
    --in FOLDER           where commands run
    --fills FOLDER        removed if the disk is full then: npm reports success for files that it cut off
    --there GLOB WAY_OUT  a path that is there afterwards; WAY_OUT is printed if not

A step runs alone in its checkout: a second one waits, and does nothing if TARGET is up to date by then. TARGET is
removed before a stamp's commands and written after them, so that no interrupted step leaves it behind. A failed command
ends the step with one line that names the fault and the way out; after a failed `--try`, NOTICE is printed instead.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
LOCK = Path(".consilium/installing.lock")
KEPT_LINES = 400  # of a command's output, to find its fault in
LEAST_PYTHON = (3, 11)
LEAST_FREE = 16_000_000  # bytes of a disk that is not full
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
AGAIN = "then run the same command again"


@dataclass(frozen=True)
class Command:
    """`notice`: printed if it fails, and the step goes on; None if its failure ends the step."""

    words: tuple[str, ...]
    notice: str | None = None


@dataclass
class Step:
    target: Path
    of: tuple[Path, ...] = ()
    says: str = ""
    holds: str | None = None
    venv: Path | None = None
    folder: Path = Path()
    fills: Path | None = None
    there: list[tuple[str, str]] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)

    @property
    def is_made(self) -> bool:
        """True if the target is newer than all that it is made from, and all else is there."""
        if not self.target.is_file() or any(not list(Path().glob(glob)) for glob, _ in self.there):
            return False
        if self.holds is not None and self.target.read_text().strip() not in ("", self.holds):
            return False
        made = self.target.stat().st_mtime
        return all(path.stat().st_mtime <= made for path in self.of if path.exists())


class StepFailed(Exception):
    """`name` and `way_out` are printed."""

    def __init__(self, name: str, way_out: str) -> None:
        self.name, self.way_out = name, way_out
        super().__init__(f"error ({name}): {way_out}")


def parsed(arguments: Sequence[str]) -> Step:
    words = deque(arguments)
    step = Step(Path(words.popleft()))
    while words and words[0] not in ("--do", "--try"):
        option, value = words.popleft(), words.popleft()
        match option:
            case "--of":
                step.of = tuple(Path(one) for one in value.split())
            case "--says":
                step.says = value
            case "--holds":
                step.holds = value
            case "--venv":
                step.venv = Path(value)
            case "--in":
                step.folder = Path(value)
            case "--fills":
                step.fills = Path(value)
            case "--there":
                step.there.append((value, words.popleft()))
            case _:
                raise SystemExit(f"{option} is not an option of run_step.py")
    while words:
        notice = words.popleft() if words.popleft() == "--try" else None
        command = []
        while words and words[0] not in ("--do", "--try"):
            command.append(words.popleft())
        step.commands.append(Command(tuple(command), notice))
    return step


# Faults, by the words of pip, npm, Python and Node. The first that fits counts: pip's last words are "No matching
# distribution" where no registry answers, too.
FAULTS = (
    ("DiskFull", r"No space left on device|ENOSPC|Disk quota exceeded|EDQUOT"),
    ("MemoryShort", r"MemoryError|Cannot allocate memory|ENOMEM|heap out of memory|bad_alloc"),
    ("FolderNotWritable", r"Permission denied|EACCES|EPERM|Read-only file system|EROFS"),
    ("HashWrong", r"DO NOT MATCH THE HASHES|EINTEGRITY"),
    ("CertificateUnknown", r"CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT|UNABLE_TO_(?:GET|VERIFY)"),
    (
        "RegistrySilent",
        r"Retrying \(|NewConnectionError|Max retries exceeded|Read timed out|name resolution|Network is unreachable"
        r"|ProxyError|ReadTimeoutError|HTTP error [45]|[45]\d\d (?:Client|Server) Error"
        r"|ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT"
        r"|code E[45]\d\d",
    ),
    ("PackageMissing", r"No matching distribution found|Could not find a version|ETARGET|EBADPLATFORM"),
    ("VenvMissing", r"ensurepip is not available|No module named venv|No module named ensurepip"),
)  # fmt: skip


def fault(command: Sequence[str], code: int, output: str, folder: Path) -> StepFailed:
    """Names a failed command's fault, with the way out. `folder`: where the step writes."""
    node = Path(command[0]).name in ("npm", "node")
    name = "MemoryShort" if code in KILLED else next((one for one, words in FAULTS if re.search(words, output)), "")
    temporary = Path(tempfile.gettempdir())
    registry, setting, shows = (
        ("npm", "NPM_CONFIG_REGISTRY", "npm config get registry") if node
        else ("pip", "PIP_INDEX_URL", f"{command[0]} -m pip config list")
    )  # fmt: skip
    python = "" if node else " and Python {}.{}".format(*sys.version_info)
    ways_out = {
        "DiskFull": (
            f"the disk is full ({_free(folder)} free in {folder}, {_free(temporary)} in {temporary}): free 3 GB"
            f" (8 GB with CUDA), or set TMPDIR to a folder with room, {AGAIN}"
        ),
        "MemoryShort": f"memory ran out: end other programs, or add swap space, {AGAIN}",
        "FolderNotWritable": (
            f"this user may not write a file (the lines above name it): make this user the owner of {ROOT}, {AGAIN}"
        ),
        "HashWrong": (
            f"a package is not the one whose hash this checkout has: ask {registry}'s own registry (unset {setting},"
            f" or check the proxy that answered), {AGAIN}"
        ),
        "CertificateUnknown": (
            f"the certificate of {registry}'s registry is not trusted here, as behind some companies' proxies: set"
            f" {'NODE_EXTRA_CA_CERTS' if node else 'PIP_CERT'} to the proxy's certificate, {AGAIN}"
        ),
        "RegistrySilent": (
            f"the package registry of {registry} does not answer (`{shows}` shows which): check the network, or set"
            f" {setting} to a registry that answers, {AGAIN}; what is installed stays"
        ),
        "PackageMissing": (
            f"the registry of {registry} lacks a package for this machine{python}: set {setting} to a complete registry"
            f"{'' if node else ', or after `make clean` pass PYTHON=/path/to/another/python (3.11 to 3.13)'}, {AGAIN}"
        ),
        "VenvMissing": (
            f"{sys.executable} cannot make virtual environments: install its venv module (Debian, Ubuntu: apt-get"
            f" install python3-venv), {AGAIN}"
        ),
    }  # fmt: skip
    shown = " ".join(command[:4]) + (" …" if len(command) > 4 else "")
    other = f"`{shown}` ended with exit code {code}, and the lines above say why: mend it, {AGAIN}"
    return StepFailed(name or "StepFailed", ways_out.get(name, other))


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free


def _free(folder: Path) -> str:
    return f"{_free_bytes(folder) / 1e9:.1f} GB"


def run(command: Command, folder: Path, writes: Path) -> None:
    """Passes its output on. `writes`: the folder that it fills. Raises StepFailed."""
    kept: deque[str] = deque(maxlen=KEPT_LINES)
    program = [shutil.which(command.words[0]) or command.words[0], *command.words[1:]]
    if "/" in command.words[0]:
        program[0] = str(Path(command.words[0]).absolute())
    try:
        process = subprocess.Popen(
            program, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace",
        )  # fmt: skip
    except FileNotFoundError:
        raise StepFailed("ProgramMissing", f"{command.words[0]} is not installed: install it, {AGAIN}") from None
    assert process.stdout is not None
    try:
        for line in process.stdout:
            kept.append(line)
            if command.notice is None:
                sys.stderr.write(line)
        code = process.wait()
    except BaseException:
        process.terminate()  # after Ctrl-C in a terminal, it has the signal already
        process.wait()
        raise
    if code and command.notice is not None:
        sys.stderr.write(f"notice: {command.notice}\n")
    elif code:
        raise fault(command.words, code, "".join(kept), writes)


def make_venv(folder: Path) -> None:
    """Makes the environment, or makes it again if its Python or its pip does not run. Raises StepFailed."""
    check = f"import sys, pip; sys.exit(sys.version_info < {LEAST_PYTHON})"
    python = folder / "bin" / "python"
    if python.exists() and not subprocess.run([python.absolute(), "-c", check], capture_output=True).returncode:
        return
    base = getattr(sys, "_base_executable", None) or sys.executable
    run(Command((base, "-m", "venv", "--clear", str(folder))), Path(), folder.absolute())


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Waits for other steps of this checkout."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write("waiting: another command installs into this folder\n")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def play(step: Step) -> None:
    """Raises StepFailed, OSError."""
    with alone(LOCK):
        if step.is_made:
            return
        if step.says:
            sys.stderr.write(f"{step.says}\n")
        if step.holds is not None:
            step.target.unlink(missing_ok=True)
        if step.venv is not None:
            make_venv(step.venv)
        writes = step.target.absolute().parent
        try:
            for command in step.commands:
                run(command, step.folder, writes)
            if step.fills is not None and _free_bytes(writes) < LEAST_FREE:
                raise fault(step.commands[-1].words, 1, "No space left on device", writes)
        except StepFailed as error:
            if step.fills is not None and error.name == "DiskFull":
                shutil.rmtree(step.fills, ignore_errors=True)
            raise
        for glob, way_out in step.there:
            if not list(Path().glob(glob)):
                raise StepFailed("StepFailed", way_out)
        if step.holds is not None:
            _write_whole(step.target, f"{step.holds}\n")
        elif not step.target.is_file():
            raise StepFailed(
                "StepFailed", f"{step.target} was not written, and the lines above say why: mend it, {AGAIN}"
            )
        os.utime(step.target)


def _write_whole(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text(text)
    part.replace(path)


def main(arguments: Sequence[str]) -> int:
    def end(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)
    try:
        play(parsed(arguments))
    except StepFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{error}\n{fault([error.filename or 'a file'], 1, str(error), ROOT)}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped: the same command goes on from here\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
