"""Links anvil and forge from PATH into node_modules where npm has no build for this machine. Needs Python 3.11 alone.

    own_foundry.py CONTRACTS

A program on PATH counts from the version in CONTRACTS/package.json on. A missing or older one is said, and not linked.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path


def version(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def missing(name: str, least: str) -> str | None:
    """The reason why the program on PATH does not do; None if it does."""
    path = shutil.which(name)
    if path is None:
        return f"{name} is not on PATH"
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    if version(said) >= version(least):
        return None
    return f"{path} is too old, or says no version ({said.partition(chr(10))[0].strip() or 'nothing'})"


def main(contracts: Path) -> None:
    modules = contracts / "node_modules" / "@foundry-rs"
    pinned = json.loads((contracts / "package.json").read_text())["devDependencies"]
    for name in ("anvil", "forge"):
        if any(one.exists() for one in modules.glob(f"{name}-*/bin/{name}")):
            continue
        least = pinned[f"@foundry-rs/{name}"]
        if why := missing(name, least):
            sys.stderr.write(f"notice: npm has no {name} for this machine, and {why}: {least} is needed\n")
            continue
        link = modules / f"{name}-own" / "bin" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(str(shutil.which(name)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
