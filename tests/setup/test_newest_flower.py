"""The check of the newest Flower says what came of it, and no version fails it. pip finds wheels that a test makes."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from consilium_chain.rpc.local_node import free_port

ROOT = Path(__file__).parents[2]
PINNED = version("flwr")
NAMES = "tests/server/test_superlink_contract.py::test_flower_still_has_every_name_that_is_imported"


def wheel(folder: Path, number: str, without: str = "") -> None:
    """The installed Flower as another version. `without`: a module that it lacks."""
    flower = distribution("flwr")
    info = f"flwr-{number}.dist-info"
    with zipfile.ZipFile(folder / f"flwr-{number}-py3-none-any.whl", "w") as archive:
        for file in flower.files or ():
            name = file.as_posix()
            if name.startswith("flwr/") and name.endswith((".py", ".toml", ".tpl", ".pyi")) and name != without:
                archive.write(str(flower.locate_file(file)), name)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: flwr\nVersion: {number}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in archive.namelist()))


def told(**variables: str) -> str:
    """The line for the table, of a check that ends with 0."""
    command = [sys.executable, str(ROOT / "setup" / "newest_flower.py"), NAMES]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    ran = subprocess.run(
        command, env=environment | {"PIP_CONFIG_FILE": os.devnull} | variables, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    return ran.stdout.splitlines()[-1].removeprefix("in the table: ")


def from_folder(folder: Path) -> str:
    return told(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder))


@pytest.mark.deep
def test_a_flower_without_a_name_that_we_use_is_said_loudly(tmp_path: Path) -> None:
    wheel(tmp_path, PINNED)
    wheel(tmp_path, "99.0.0", without="flwr/supernode/start_client_internal.py")
    assert from_folder(tmp_path) == f"FAILED with flwr 99.0.0 (pinned: {PINNED}): {NAMES}[client]"


@pytest.mark.deep
def test_a_newer_flower_with_all_of_it_passes(tmp_path: Path) -> None:
    wheel(tmp_path, "99.0.0")
    assert from_folder(tmp_path) == f"passed with flwr 99.0.0 (pinned: {PINNED})"


def test_the_pinned_flower_is_not_tried_again(tmp_path: Path) -> None:
    wheel(tmp_path, PINNED)
    wheel(tmp_path, "0.1.0")
    assert from_folder(tmp_path) == f"the pinned flwr {PINNED} is the newest that pip finds"


@pytest.mark.timeout(120)
def test_a_silent_registry_is_no_failure() -> None:
    assert told(PIP_INDEX_URL=f"http://127.0.0.1:{free_port()}/simple") == "no registry answered"
