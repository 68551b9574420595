"""The units that are shipped, as systemd itself reads them, and as the program that they start does."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from consilium_cli.main import app
from typer.testing import CliRunner

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
TARGET = FOLDER / "consilium.target"
UNITS = sorted(FOLDER.glob("*.service"))
PROGRAM = "/opt/consilium/bin/consilium"
NODES = ["consilium-hospital@.service", "consilium-voter@.service"]
SERVERS = [
    "consilium-aggregator@.service", "consilium-api.service", "consilium-index.service", "consilium-sponsor@.service",
    "consilium-worker.service",
]  # fmt: skip
HARDENED = {
    "User": "consilium", "UMask": "0077", "NoNewPrivileges": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes",
    "ProtectSystem": "strict", "RestrictNamespaces": "yes", "CapabilityBoundingSet": "", "Restart": "on-failure",
}  # fmt: skip
CALLS = "@system-service"
OF_NODES = f"{CALLS} seccomp"  # which limits the process that computes programs further

each = pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)


def read(unit: Path) -> dict[str, list[tuple[str, str]]]:
    """A unit's sections; a setting may stand there more than once."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            section.append((name, value))
    return found


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", [TARGET, *UNITS], ids=lambda path: path.name)
def test_units_hold(unit: Path, tmp_path: Path) -> None:
    for one in (TARGET, *UNITS):
        text = one.read_text().replace(PROGRAM, shutil.which("true") or "/bin/true")
        (tmp_path / one.name.replace("@", "@3")).write_text(text)
    copy = tmp_path / unit.name.replace("@", "@3")
    found = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True)
    assert (found.returncode, [line for line in found.stderr.splitlines() if copy.name in line]) == (0, [])


@each
def test_what_they_start_is_a_command(unit: Path) -> None:
    (start,) = [value for name, value in read(unit)["Service"] if name == "ExecStart"]
    program, *arguments = shlex.split(start.replace("%i", "3").replace("%d", "/run/credentials/one"))
    assert program == PROGRAM
    ran = CliRunner().invoke(app, [*arguments, "--help"])
    assert (ran.exit_code, ran.exception) == (0, None)
    assert f"Usage: root {' '.join(arguments[:2])} [OPTIONS]" in ran.output


@each
def test_they_are_hardened_alike(unit: Path) -> None:
    settings = dict(read(unit)["Service"])
    assert {name: settings.get(name) for name in HARDENED} == HARDENED
    assert settings["SystemCallFilter"] == (OF_NODES if unit.name in NODES else CALLS)
    assert settings["ProtectHome"] == ("read-only" if unit.name in NODES else "yes")  # data may lie in somebody's home


@pytest.mark.parametrize("name", SERVERS)
def test_what_a_server_reads_it_is_handed(name: str) -> None:
    """Files of root's, which may hold passwords; no secret is in a unit, an environment or on a command line."""
    settings = read(FOLDER / name)
    service = settings["Service"]
    handed = [value.partition(":") for key, value in service if key == "LoadCredential"]
    assert all(path.startswith("/etc/consilium/") for _, _, path in handed)
    (start,) = [value for key, value in service if key == "ExecStart"]
    config = start.rpartition("/")[2]
    assert start.endswith(f"--config %d/{config}")
    assert config in {own for own, _, _ in handed}
    assert [value for key, value in service if key == "Environment"] == ["OMP_NUM_THREADS=1"]
    assert ("PartOf", TARGET.name) in settings["Unit"]
    assert settings["Install"] == [("WantedBy", TARGET.name)]


def test_there_are_units() -> None:
    assert [unit.name for unit in UNITS] == sorted(SERVERS + NODES)
