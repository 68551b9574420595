"""Locks are one process's at a time, and free once it lets go or ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from consilium_core.locks import alone, in_turn, is_locked

HOLDS = """
import sys, time
from pathlib import Path
from consilium_core.locks import in_turn
with in_turn(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_who_comes_second_has_its_turn_once_the_first_lets_go(tmp_path: Path) -> None:
    path, entered = tmp_path / "made" / "lock", threading.Event()

    def second() -> None:
        with in_turn(path):
            entered.set()

    waiting = threading.Thread(target=second)
    with in_turn(path):
        with pytest.raises(BlockingIOError, match="another's"), alone(path, BlockingIOError("another's")):
            pass
        assert is_locked(path)
        waiting.start()
        assert not entered.wait(0.3)
    assert entered.wait(20)
    waiting.join(20)
    assert not is_locked(path)
    with alone(path, BlockingIOError("another's")):
        assert is_locked(path)
    assert not is_locked(path)


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert is_locked(path)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    with in_turn(path):
        pass
