"""Takes a small internet down once its standard input ends: when it is told to, or when whoever made it is gone.

`python guard.py PREFIX FOLDER…`: namespaces whose names begin with PREFIX, all that runs in them, their clocks, mounts
below FOLDERs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path


def namespaces(prefix: str) -> list[str]:
    shown = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    return [line.split()[0] for line in shown.splitlines() if line.startswith(f"{prefix}-")]


def clocks_of(prefix: str) -> Path:
    """Where its hosts' clocks are: everybody may read them, PostgreSQL's user too."""
    return Path(tempfile.gettempdir(), f"{prefix}-clocks")


def kill_all(namespace: str) -> bool:
    """Whether there was anybody."""
    shown = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False).stdout
    for number in shown.split():
        with suppress(ProcessLookupError):
            os.kill(int(number), signal.SIGKILL)
    return bool(shown.split())


def main(prefix: str, *folders: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    found = namespaces(prefix)
    for _ in range(50):  # a supervisor may have started somebody meanwhile
        if not any([kill_all(one) for one in found]):
            break
        time.sleep(0.1)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mounted in reversed([one for one in mounts if one.startswith(tuple(f"{folder}/" for folder in folders))]):
        subprocess.run(["umount", "--lazy", mounted], capture_output=True, check=False)
    for one in found:
        subprocess.run(["ip", "netns", "del", one], capture_output=True, check=False)
        shutil.rmtree(Path("/etc/netns", one), ignore_errors=True)
    shutil.rmtree(clocks_of(prefix), ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
