"""A disk without room, a real one of a few kB: it is said in words, and nothing half is left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import name_of

IN_A_FULL_DISK = """
set -e
mount -t tmpfs -o size=16k none "$1"
head -c 12288 /dev/zero > "$1/filler"  # a page is left, and a home has several files
shift
exec "$@"
"""


def may_mount() -> bool:
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not may_mount(), reason="only root may mount a small disk of its own")
def test_a_home_is_made_or_the_full_disk_is_named(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "rows.csv").write_text("age,sick\n50,0\n60,1\n" * 50)
    address = "0x" + "11" * 20
    Deployment(31337, 0, address, address, address, address, address, address).write(tmp_path / "book.json")
    (tmp_path / "password").touch(mode=0o600)
    (tmp_path / "password").write_text("secret\n")
    init = [
        sys.executable, "-m", "consilium_cli.main", "hospital", "init", "--home", str(disk / "home"), "--offline",
        "--chain-url", "http://127.0.0.1:1", "--address-book", str(tmp_path / "book.json"),
        "--artifacts", str(tmp_path), "--data", str(tmp_path / "rows.csv"), "--operator", "any",
        "--password-file", str(tmp_path / "password"),
    ]  # fmt: skip
    script = ["unshare", "--mount", "sh", "-c", IN_A_FULL_DISK, "sh", str(disk), *init]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error (DiskFull): " in done.stderr
    assert "free some space, and run the command again" in done.stderr
    assert "Traceback" not in done.stderr


def test_journals_name_what_somebody_can_mend() -> None:
    assert name_of(OSError(28, "No space left on device")) == "DiskFull"
    assert name_of(OSError(30, "Read-only file system")) == "DiskReadOnly"
    assert name_of(OSError("anything else")) == "OSError"
