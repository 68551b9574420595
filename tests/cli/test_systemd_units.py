"""The units that are shipped, as systemd itself reads them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_hold(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name.replace("@", "@3")
    program = "/opt/consilium/bin/consilium"
    text = unit.read_text()
    assert f"ExecStart={program} " in text
    copy.write_text(text.replace(program, shutil.which("true") or "/bin/true"))
    found = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True)
    assert (found.returncode, [line for line in found.stderr.splitlines() if copy.name in line]) == (0, [])


def test_there_are_units() -> None:
    assert [unit.name for unit in UNITS] == ["consilium-hospital@.service", "consilium-voter@.service"]
