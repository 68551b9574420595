"""All parts of the tests run, and one table says how each ended; Ctrl-C ends them with their own processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "setup"))

from run_parts import Part, environment  # noqa: E402  (a program, no package)

MAKEFILE = """
good:
	@echo "all is well, $(WHOM)"
bad:
	@echo "FAILED tests/a/test_a.py::test_a[x - y] - assert 1 == 2"
	@echo "ERROR tests/b/test_b.py - ImportError"; exit 3
worse:
	@printf '\\033[31mFAIL\\033[0m  tests/amounts.test.ts > amounts > round\\n'
	@echo "[FAIL: revert] testPay() (gas: 12)"; exit 1
lint:
	@echo; for line in 1 2 3 4 5 6 7 8; do echo "src/a.py:$$line: E501"; done; exit 1
slow:
	@sleep 300 & echo $$! > slow.pid; echo started; wait
deaf:
	@trap '' INT; echo started; sleep 1; echo "put away"
left:
	@sleep 300 & echo $$! > left.pid
told:
	@echo "in the table: FAILED with 2.0"
after:
	@test -f .consilium/tests/good.log && echo "later"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return tmp_path


def started(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "setup" / "run_parts.py"), *arguments]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env=os.environ | variables, start_new_session=True
    )


def played(folder: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    """Exit status, output of the parts, and the table."""
    process = started(folder, *arguments, **variables)
    said, _ = process.communicate(timeout=60)
    lines, _, table = said.partition("\n\npart ")
    return process.returncode, lines, table


def has_ended(folder: Path, name: str) -> bool:
    end = time.monotonic() + 20
    number = int((folder / f"{name}.pid").read_text())
    while time.monotonic() < end:
        state = Path(f"/proc/{number}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_parts_own_line_is_in_the_table_even_if_it_passed(folder: Path) -> None:
    code, _, table = played(folder, "good", "told")
    assert code == 0
    assert re.search(r"^told +passed +\d\.\d\n +FAILED with 2\.0$", table, re.MULTILINE)


def test_all_parts_run_and_the_table_names_what_failed(folder: Path) -> None:
    given = ("--beside", "2", "good", "bad", "worse", "lint", "--then", "after")
    code, lines, table = played(folder, *given, MAKEFLAGS=" -j4 --jobserver-auth=3,4 -- WHOM=everybody")
    assert code == 1
    assert "good | all is well, everybody" in lines.splitlines()
    assert "after | later" in lines.splitlines()
    assert "jobserver" not in lines
    rows = dict(re.findall(r"^(\w+) +(passed|FAILED) +\d+\.\d$", table, re.MULTILINE))
    assert rows == {"good": "passed", "bad": "FAILED", "worse": "FAILED", "lint": "FAILED", "after": "passed"}
    shown = [line.strip() for line in table.splitlines()]
    for named in ("tests/a/test_a.py::test_a[x - y]", "tests/b/test_b.py", "testPay()"):
        assert named in shown
    assert "tests/amounts.test.ts > amounts > round" in shown
    assert [line for line in shown if "E501" in line] == [f"src/a.py:{k}: E501" for k in range(3, 9)]
    assert "all of it: .consilium/tests/lint.log" in shown
    assert (folder / ".consilium" / "tests" / "lint.log").read_text().count("E501") == 8


def test_it_passes_if_every_part_passes(folder: Path) -> None:
    code, _, table = played(folder, "good", "--then", "after")
    assert (code, table.count("passed"), "FAILED" in table) == (0, 2, False)


def test_a_process_that_outlives_its_part_is_ended(folder: Path) -> None:
    assert played(folder, "left")[0] == 0
    assert has_ended(folder, "left")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_parts_and_the_table_still_comes(folder: Path, number: int, code: int) -> None:
    process = started(folder, "--beside", "2", "slow", "deaf", "good", "--then", "after")
    assert process.stdout is not None
    assert {process.stdout.readline(), process.stdout.readline()} == {"slow | started\n", "deaf | started\n"}
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    rows = dict(re.findall(r"^(\w+) +(passed|stopped|FAILED|not run) +\d+\.\d$", said, re.MULTILINE))
    assert rows["slow"] == "stopped"
    assert rows["good"] == rows["after"] == "not run"
    assert "deaf | put away" in said, "a part has time to end"
    assert has_ended(folder, "slow")


def test_a_long_list_of_failures_is_shortened() -> None:
    part = Part("python-test", "FAILED", 1, [f"FAILED tests/x.py::test_{k} - why\n" for k in range(40)])
    assert part.why[-1] == "and 25 more"
    assert len(part.why) == 16


@pytest.mark.parametrize(
    ("flags", "kept"),
    [("", ""), ("kw", "kw"), (" -j2 --jobserver-auth=3,4 -Oline -- A=1 B=2", " -- A=1 B=2"), ("k -j2", "k")],
)
def test_the_job_server_of_make_is_not_passed_on(monkeypatch: pytest.MonkeyPatch, flags: str, kept: str) -> None:
    monkeypatch.setenv("MAKEFLAGS", flags)
    monkeypatch.setenv("MAKELEVEL", "1")
    assert environment()["MAKEFLAGS"] == kept
    assert "MAKELEVEL" not in environment()
