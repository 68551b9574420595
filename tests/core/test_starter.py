"""Processes that are forked from one behave as if each were started anew."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from consilium_core.children import child_environment, started_at
from consilium_core.errors import StarterLost
from consilium_core.starter import Starter
from consilium_lab.demo.processes import Line, Processes

PRELOADED = ("numpy", "nacl.utils", "consilium_core.children")
TOLD = """
import json, os, random, secrets, sys
import numpy as np
from nacl.utils import random as sodium
drawn = [secrets.token_hex(8), random.random(), np.random.default_rng().random(), sodium(8).hex()]
open_files = sorted(int(one) for one in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + one))
print(json.dumps({"argv": sys.argv, "name": __name__, "session": os.getsid(0) == os.getpid(), "drawn": drawn,
                  "open": open_files, "threads": os.environ["OMP_NUM_THREADS"], "secret": "SECRET" in os.environ,
                  "parent": os.getppid(), "told_only_it": os.environ.get("TOLD_ONLY_IT")}))
print("an error", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
ASKS = """
import json, os
from consilium_core.children import start_module
os.environ["TOLD_ONLY_IT"] = "x"
child = start_module("tells", "4", environment={"TOLD_ONLY_IT": "y"})
with child.stdin, child.stdout:
    told = json.loads(child.stdout.read())
print(json.dumps({"told": told, "code": child.wait(30), "same_parent": told["parent"] == os.getppid()}))
"""
LIVES_ON = """
import json, os, time
from consilium_core.children import start_module
child = start_module("waits")
own = json.loads(child.stdout.readline())["pid"]
told = {"own": own, "group": os.getpgid(own) == os.getpid()}
print(json.dumps(told), flush=True)
while True: time.sleep(1)
"""
OWNER = """
import sys, time
from pathlib import Path
from consilium_core.children import child_environment
from consilium_core.starter import Starter
folder = Path(sys.argv[1])
starter = Starter(folder, ["json"])
with (folder / "said").open("wb") as said, (folder / "errors").open("wb") as errors:
    command = ["lives_on", "--with", sys.argv[2]]
    child = starter.start(command, child_environment(), said, errors, "a-long-name-of-it", True)
print(child.pid, flush=True)
time.sleep(600)
"""
WAITS = "import os, time\nprint('{\"pid\": %d}' % os.getpid(), flush=True)\nwhile True: time.sleep(1)\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    (folder / "tells.py").write_text(TOLD)
    (folder / "waits.py").write_text(WAITS)
    (folder / "asks.py").write_text(ASKS)
    (folder / "lives_on.py").write_text(LIVES_ON)
    return folder


@pytest.fixture(scope="module")
def starter(folder: Path) -> Iterator[Starter]:
    before, os.environ["SECRET"] = Path.cwd(), "x"
    os.chdir(folder)  # where `python -m` looks first
    try:
        with Starter(folder, PRELOADED) as starter:
            yield starter
    finally:
        os.chdir(before)
        del os.environ["SECRET"]


@pytest.fixture
def processes(starter: Starter, tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path, starter) as processes:
        yield processes


def told(processes: Processes, count: int) -> list[Line]:
    found: list[Line] = []
    until = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < until
        found += processes.lines()
        time.sleep(0.01)
    return sorted(found, key=lambda line: line.process)


def test_each_child_is_a_process_of_its_own(processes: Processes, tmp_path: Path) -> None:
    for name in ("a", "b"):
        processes.start(name, "tells", "0", f"--{name}")
    a, b = told(processes, 2)
    for line in (a, b):
        assert (line.fields["argv"][1:], line.fields["name"]) == (["0", f"--{line.process}"], "__main__")
        assert (line.fields["session"], line.fields["threads"], line.fields["secret"]) == (True, "1", False)
        assert len(line.fields["open"]) == 4, "it has its outputs, its input and the starter, and nothing of another"
    assert not set(map(str, a.fields["drawn"])) & set(map(str, b.fields["drawn"])), "both drew the same random number"
    assert processes.wait(30) == []
    assert (processes.errors_of("a"), processes.ended_badly()) == ("an error", {})
    assert json.loads((tmp_path / "b.jsonl").read_text()) == b.fields


def test_a_childs_own_children_are_forked_too_and_have_nothing_of_it(processes: Processes) -> None:
    processes.start("parent", "asks")
    (line,) = told(processes, 1)
    child = line.fields["told"]
    assert (child["argv"][1:], child["open"], child["secret"], child["told_only_it"]) == (["4"], [0, 1, 2], False, "y")
    assert line.fields["code"] == 4
    assert line.fields["same_parent"], "the starter has forked both"
    assert processes.wait(30) == []


def test_exit_codes_and_signals_are_reported_and_nothing_is_left(processes: Processes) -> None:
    processes.start("fails", "tells", "3")
    told(processes, 1)
    assert processes.wait(30) == []
    assert processes.ended_badly() == {"fails": 3}
    for name in ("killed", "ended"):
        processes.start(name, "waits")
    ended, killed = (psutil.Process(line.fields["pid"]) for line in told(processes, 2))
    processes.kill("killed")
    ended.terminate()
    gone, alive = psutil.wait_procs([ended, killed], timeout=30)
    assert (len(gone), alive, processes.wait(30)) == (2, [], [])
    assert processes.ended_badly() == {"fails": 3, "ended": -signal.SIGTERM}


def test_a_lost_starter_is_named(folder: Path, tmp_path: Path) -> None:
    others = psutil.Process().children()
    with Starter(folder, PRELOADED) as lost, Processes(tmp_path, lost) as processes:
        (own,) = set(psutil.Process().children()) - set(others)
        own.kill()

        def start_twice() -> None:
            for _ in range(2):  # the first request may still reach its socket
                processes.start("late", "tells", "0")

        with pytest.raises(StarterLost):
            start_twice()


def test_a_child_that_lives_on_has_its_own_children_in_its_session_and_outlives_all_others(folder: Path) -> None:
    """Not ended by a killed owner. Its children go with its group, whether or not they notice its end."""
    long = "x" * 10_000
    command = [sys.executable, "-c", OWNER, str(folder), long]
    with subprocess.Popen(command, cwd=folder, env=child_environment(), stdout=subprocess.PIPE) as owner:
        try:
            assert owner.stdout is not None
            pid = int(owner.stdout.readline())
            (starter,) = psutil.Process(owner.pid).children()
            said = folder / "said"
            until = time.monotonic() + 60
            while not said.read_text().endswith("\n"):
                assert time.monotonic() < until, (folder / "errors").read_text()
                time.sleep(0.01)
        finally:
            owner.kill()
    told = json.loads(said.read_text())
    assert (told["group"], os.getsid(pid)) == (True, pid)
    gone, _ = psutil.wait_procs([starter], timeout=30)
    assert gone, "the starter ends with its owner"
    time.sleep(0.5)
    left = [psutil.Process(one) for one in (pid, told["own"])]
    assert [one.status() for one in left] == [psutil.STATUS_SLEEPING] * 2
    for one, shown in zip(left, (["lives_on", "--with", long[:1_500]], ["waits"]), strict=True):
        assert Path(f"/proc/{one.pid}/comm").read_text() == "a-long-name-of-\n"
        assert [word[:1_500] for word in one.cmdline()[1:]] == ["-m", *shown]
        assert one.environ()["PATH"] == os.environ["PATH"], "the command does not run into it"
    began = started_at(pid)
    os.killpg(pid, signal.SIGKILL)
    assert psutil.wait_procs(left, timeout=30)[1] == []
    assert began is not None
    assert started_at(pid) is None
