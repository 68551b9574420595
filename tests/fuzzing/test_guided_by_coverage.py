"""The parsers of plain bytes once more, by inputs that atheris finds to reach code which no earlier one has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from parsers import PARSERS, ZK

SECONDS = 20
HERE = Path(__file__).parent
# By memory alone, and where a single input takes less than a millisecond.
ROWS = sorted(
    {*ZK, "signed update", "signed statement", "accuser's file", "drand relay's answer", "event log", "revert's data"}
    | {
        "sponsored batch",
        "fingerprint",
        "body of a signed update",
        "message to sign in",
        "cursor",
        "task file",
        "mapping",
    }
)


def test_rows_are_of_the_table() -> None:
    assert set(ROWS) <= set(PARSERS)


@pytest.mark.deep
@pytest.mark.parametrize("name", ROWS)
def test_no_input_that_coverage_leads_to_is_read_otherwise(name: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="it has no wheel for this platform or version of Python")
    paths = [str(HERE), str(HERE.parent), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    command = [sys.executable, str(HERE / "guided.py"), name, str(SECONDS), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    assert ended.returncode == 0, ended.stderr[-2_000:]
    assert "Done " in ended.stderr
