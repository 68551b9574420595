"""Plays a real round with the newest Flower that pip finds, in an environment of its own on top of this one.

    .venv/bin/python setup/newest_flower.py [TEST...]

The last line says for the table of `make test` which version this was and what came of it. A newer Flower that breaks
this project is a fault of tomorrow's: it is loud there, and the exit status stays 0.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

from run_parts import FOR_THE_TABLE, Part
from run_step import FAULTS

ROOT = Path(__file__).resolve().parents[1]
# Flower's private names that this project uses; then SuperLink, SuperNode and executor, each its own process.
TESTS = ("tests/server/test_superlink_contract.py", "tests/client/test_relay_flower.py")
PIP = ("-m", "pip", "--disable-pip-version-check", "--retries=1", "--timeout=20")
SILENT = dict(FAULTS)["RegistrySilent"]
PATIENCE = 1200.0  # seconds


def run(*command: str | Path) -> tuple[int, str]:
    """Exit status and output. A command that does not end counts as failed."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"{command[1]} did not end within {PATIENCE:.0f} s"
    return done.returncode, done.stdout


def pinned() -> str:
    (version,) = re.findall(r"^flwr==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return str(version)


def environment(folder: Path) -> Path:
    """The interpreter of an environment that finds this one's packages after its own."""
    venv.create(folder, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    others = [path for path in sys.path[1:] if not path.startswith(sys.base_prefix)]
    (own / "others.pth").write_text("\n".join(others))
    return folder / "bin" / "python"


def played(python: Path, tests: Sequence[str]) -> tuple[int, str]:
    """New warnings are no fault. A busy machine misses deadlines, so failed tests have a second try."""
    cache = f"cache_dir={python.parent / 'cache'}"
    pytest = (python, "-m", "pytest", "-q", "-W", "default", "-o", cache, "-m", "not deep")
    code, said = run(*pytest, *tests)
    return run(*pytest, "--last-failed", *tests) if code else (code, said)


def outcome(tests: Sequence[str]) -> str:
    _, said = run(sys.executable, *PIP, "index", "versions", "flwr")
    found = re.search(r"^flwr \((\S+)\)$", said, re.MULTILINE)
    if found is None:
        return "no registry answered" if re.search(SILENT, said) else "pip finds no flwr"
    newest = found[1]
    if newest == pinned():
        return f"the pinned flwr {newest} is the newest that pip finds"
    with tempfile.TemporaryDirectory(prefix="newest-flower-") as folder:
        python = environment(Path(folder))
        code, said = run(python, *PIP, "install", "--quiet", f"flwr=={newest}")
        if code and re.search(SILENT, said):
            return "no registry answered"
        if not code:
            code, said = played(python, tests)
        sys.stdout.write(said)
    if not code:
        return f"passed with flwr {newest} (pinned: {pinned()})"
    why = "; ".join(Part("", lines=said.splitlines()).why)
    return f"FAILED with flwr {newest} (pinned: {pinned()}): {why}"


if __name__ == "__main__":
    sys.stdout.write(f"{FOR_THE_TABLE}{outcome(sys.argv[1:] or TESTS)}\n")
