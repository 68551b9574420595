"""A checkout in which make installs, with programs that stand for Python, pip, Node and npm. Nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = (
    "Makefile", "setup", "pyproject.toml", "constraints.txt", "requirements", "client/encoders.txt",
    "chain/contracts/package.json", "chain/contracts/package-lock.json", "dashboard/package-lock.json",
)  # fmt: skip
# All that make finds on its PATH, beside the programs that a test makes.
NEEDED = (
    "sh", "cat", "find", "grep", "mkdir", "touch", "rm", "mv", "test", "echo", "true", "false", "sleep", "kill",
    "chmod",
)  # fmt: skip
TASKS = "chain/consilium_chain/contracts/Tasks.json"
SERVED = "server/consilium_server/dashboard/index.html"
ANVIL = "chain/contracts/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
FORGE = ANVIL.replace("anvil", "forge")


class Checkout:
    """At first nothing is installed, and Python and Node are recent."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs = folder / "checkout", folder / "programs"
        for name in COPIED:
            source, target = ROOT / name, self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
        for name in ("src", "script"):
            (self.folder / "chain" / "contracts" / name).mkdir()
        self.write("chain/contracts/foundry.toml")
        self.programs.mkdir()
        for name in NEEDED:
            if found := shutil.which(name):
                (self.programs / name).symlink_to(found)
        (self.programs / "python3").symlink_to(sys.executable)
        self.program("node", 'case "$1" in --version) echo v22.12.0;; esac')
        self.program("npm", "\n".join(f"mkdir -p {one.parent} && touch {one}" for one in map(_below, (ANVIL, FORGE))))

    def write(self, name: str, text: str = "") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def program(self, name: str, script: str) -> None:
        self._script(self.programs / name, script)

    def pip(self, script: str = "") -> None:
        """An environment whose pip runs `script`, and notes its arguments in `asked`. It makes `consilium`."""
        self._script(
            self.folder / ".venv" / "bin" / "python",
            'case "$*" in *"import sys, pip"*) exit 0;; esac\n'
            'echo "$*" >> asked\n'
            f"{script}\n"
            'case "$*" in *"-e .") printf "#!/bin/sh\\necho played" > .venv/bin/consilium\n'
            "chmod +x .venv/bin/consilium;; esac",
        )

    def installed(self, *, contracts: bool = True) -> None:
        """Python's packages, and the contracts."""
        self._script(self.folder / ".venv" / "bin" / "consilium", "echo played")
        python = self.folder / ".venv" / "bin" / "python"
        python.unlink(missing_ok=True)
        python.symlink_to(sys.executable)
        self.write(".venv/.demo", "cpu\n")
        if contracts:
            self.write(ANVIL)
            self.write(FORGE)
            self.write("chain/contracts/node_modules/.installed")
            self.write(TASKS)

    @property
    def asked(self) -> list[str]:
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PIP_"))}
        return kept | {"PATH": str(self.programs)}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        make = shutil.which("make")
        assert make is not None
        return subprocess.Popen(
            [make, *arguments], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def make(self, *arguments: str) -> tuple[int, str]:
        """Exit code, and all that is said."""
        process = self.start(*arguments)
        said, _ = process.communicate(timeout=60)
        return process.returncode, said

    @staticmethod
    def _script(path: Path, script: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


def _below(name: str) -> Path:
    return Path(name).relative_to("chain/contracts")
