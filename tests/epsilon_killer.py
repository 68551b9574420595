"""Charges an ε ledger in processes of which each ends at another point of its writing, and tells what was left.

`python tests/epsilon_killer.py FOLDER`: one JSON object a line on standard output. A process is ended by SIGKILL before
or after each call that reaches the disk, or within a write; in "power" cases what had not been synced by then is lost,
too. After it, the hospital starts anew and trains on until its budget refuses.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from consilium_client.errors import BudgetError
from consilium_client.privacy.accountant import Charge, PrivacyAccountant
from consilium_client.privacy.dp_sgd import Mechanism

CALLS = ("open", "ftruncate", "write", "fsync", "close")
MECHANISM, DELTA = Mechanism(4.5, 1.0, 10), 1e-5
ALLOWED = 8.0  # enough for four rounds and not for five
BEFORE = {"nothing": b"", "torn": b'{"task": "t", "round": 1, "noise_mul'}


def charge_of(round_: int) -> Charge:
    return Charge.of("t", round_, MECHANISM, DELTA)


class Disk:
    """Counts the calls that reach the disk, ends this process at one of them, and notes what is synced by then."""

    def __init__(self, ledger: Path, synced: Path, fatal: int) -> None:
        self._ledger, self._synced, self._fatal = ledger, synced, fatal
        self._step, self._named = 0, ledger.exists()
        self._bytes = ledger.read_bytes() if self._named else b""
        self._real = {name: getattr(os, name) for name in CALLS}
        for name in CALLS:
            setattr(os, name, self._watched(name))

    def _watched(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def call(*arguments: Any) -> Any:
            self._reach()
            if name == "write":
                file, line = arguments
                half = len(line) // 2
                real(file, line[:half])
                self._reach()
                return half + real(file, line[half:])
            result = real(*arguments)
            if name == "fsync":
                self._note(arguments[0])
            return result

        return call

    def _reach(self) -> None:
        self._step += 1
        if self._step == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def _note(self, file: int) -> None:
        """What is on the disk for sure: the file's bytes once they are synced, and the file once its folder is."""
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        if path.is_dir():
            self._named = True
        else:
            self._bytes = self._ledger.read_bytes()
        kept = self._real["open"](self._synced, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._real["write"](kept, self._bytes if self._named else b"")
        self._real["close"](kept)


def case(folder: Path, before: bytes, fatal: int, power: bool) -> bool:
    """Whether the process came to its point at all."""
    folder.mkdir()
    path, began, synced = folder / "privacy.jsonl", folder / "began", folder / "synced"
    if before:
        PrivacyAccountant(path).charge(charge_of(0), ALLOWED)
        with path.open("ab") as file:
            file.write(before)
    first = path.read_bytes() if before else b""
    child = os.fork()
    if child == 0:
        Disk(path, synced, fatal)
        PrivacyAccountant(path).charge(charge_of(1), ALLOWED)
        began.mkdir()  # training begins
        os._exit(0)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    if power:
        path.write_bytes(synced.read_bytes() if synced.exists() else first)
    ledger = PrivacyAccountant(path)
    found = [one.round for one in ledger.charges()]
    trained = [round_ for round_ in range(1, 10) if _is_affordable(ledger, round_)]
    told = {
        "before": len(before), "fatal": fatal, "power": power, "killed": killed, "began": began.exists(),
        "found": found, "trained": trained, "after": [one.round for one in ledger.charges()],
        "exit": os.waitstatus_to_exitcode(status),
    }  # fmt: skip
    sys.stdout.write(json.dumps(told) + "\n")
    return killed


def _is_affordable(ledger: PrivacyAccountant, round_: int) -> bool:
    try:
        ledger.charge(charge_of(round_), ALLOWED)
    except BudgetError:
        return False
    return True


def rivals(folder: Path) -> None:
    """Four processes at once, each with rounds of its own, and one budget."""
    folder.mkdir()
    path = folder / "privacy.jsonl"
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            ledger = PrivacyAccountant(path)
            os._exit(sum(_is_affordable(ledger, 10 * number + one) for one in range(3)))
        children.append(child)
    granted = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    told = {"granted": granted, "after": [one.round for one in PrivacyAccountant(path).charges()]}
    sys.stdout.write(json.dumps(told) + "\n")


def main(folder: Path) -> None:
    folder.mkdir()
    rivals(folder / "rivals")
    for name, before in BEFORE.items():
        for power in (False, True):
            fatal = 1
            while case(folder / f"{name}-{fatal}-{power}", before, fatal, power):
                fatal += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
