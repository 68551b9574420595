"""Installations by make, with programs that stand for pip, Node and npm: choices, interruptions, two at once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkout_driver import SERVED, TASKS, Checkout

INDEX = "--index-url=https://download.pytorch.org/whl/cpu"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def until(path: Path) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end, f"{path} is not there"
        time.sleep(0.05)


def test_a_choice_of_torch_is_kept_and_another_one_installs_torch_again(checkout: Checkout) -> None:
    checkout.pip()
    stamp = checkout.folder / ".venv" / ".demo"
    assert checkout.make("install")[0] == 0
    assert stamp.read_text() == "cpu\n"
    (from_index,) = (line for line in checkout.asked if INDEX in line)
    assert "--force-reinstall" not in from_index
    count = len(checkout.asked)
    checkout.installed(contracts=False)
    assert checkout.make("install")[0] == 0
    assert len(checkout.asked) == count, "nothing is installed twice"
    checkout.pip()
    assert checkout.make("install", "TORCH=cuda")[0] == 0
    assert stamp.read_text() == "cuda\n"
    again = [line for line in checkout.asked[count:] if "torch==" in line]
    assert ["--force-reinstall" in line for line in again] == [True, False]
    assert not any("download.pytorch.org" in line for line in again)
    count = len(checkout.asked)
    assert checkout.make("install")[0] == 0
    assert len(checkout.asked) == count, "without TORCH, the installed one stays"


def test_a_silent_index_of_torch_is_said_with_what_is_downloaded_now(checkout: Checkout) -> None:
    checkout.pip(f'case "$*" in *"{INDEX}"*) echo "Network is unreachable"; exit 1;; esac')
    code, said = checkout.make("install")
    assert code == 0
    assert (
        "notice: https://download.pytorch.org/whl/cpu gave no torch: it comes from the usual registry, where torch for"
        " Linux has CUDA (2.7 GB to download for torch); Ctrl-C stops it"
    ) in said.splitlines()


def test_another_choice_fails_if_its_index_is_silent(checkout: Checkout) -> None:
    """The installed torch is of another kind, and would count as the one that is asked for."""
    checkout.installed(contracts=False)
    (checkout.folder / ".venv" / ".demo").write_text("cuda\n")
    checkout.pip(f'case "$*" in *"{INDEX}"*) echo "Network is unreachable"; exit 1;; esac')
    code, said = checkout.make("install", "TORCH=cpu")
    assert (code, "error (RegistrySilent)" in said) == (2, True)
    assert not (checkout.folder / ".venv" / ".demo").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_installation_leaves_no_stamp_and_goes_on(checkout: Checkout, number: int) -> None:
    checkout.pip("touch began; test -f go || sleep 30")
    process = checkout.start("install")
    until(checkout.folder / "began")
    os.killpg(process.pid, number)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert not (checkout.folder / ".venv" / ".demo").exists()
    checkout.write("go")
    assert checkout.make("install")[0] == 0
    assert (checkout.folder / ".venv" / ".demo").read_text() == "cpu\n"


def test_two_at_once_install_once(checkout: Checkout) -> None:
    checkout.pip("touch began; sleep 0.5")
    first = checkout.start("install")
    until(checkout.folder / "began")
    code, said = checkout.make("install")
    first.communicate(timeout=60)
    assert (first.returncode, code) == (0, 0)
    assert "waiting: another command installs into this folder" in said
    assert sum("-e ." in line for line in checkout.asked) == 1


def test_a_stamp_without_its_packages_is_no_stamp(checkout: Checkout) -> None:
    checkout.installed()
    assert checkout.make("demo") == (0, "played\n")
    (checkout.folder / ".venv" / "bin" / "consilium").unlink()
    checkout.pip()
    code, said = checkout.make("demo")
    assert code == 0
    assert said.splitlines()[-1] == "played"
    assert any("-e ." in line for line in checkout.asked)


def test_contracts_count_once_they_are_written(checkout: Checkout) -> None:
    checkout.installed()
    (checkout.folder / TASKS).unlink()
    code, said = checkout.make("demo")  # this npm compiles nothing
    assert (code, "Tasks.json was not written" in said) == (2, True)
    assert not (checkout.folder / TASKS).exists()


def test_foundry_on_path_does_where_npm_has_none(checkout: Checkout) -> None:
    checkout.installed(contracts=False)
    checkout.program("npm", "true")
    code, said = checkout.make("chain/contracts/node_modules/.installed")
    assert code == 2
    assert "notice: npm has no anvil for this machine, and anvil is not on PATH: 1.7.1 is needed" in said
    assert "error (StepFailed): npm has no build of Foundry for this machine: install anvil and forge by hand" in said
    checkout.program("anvil", "echo anvil Version: 1.7.1-stable")
    checkout.program("forge", "echo forge Version: 1.5.12-stable")
    code, said = checkout.make("chain/contracts/node_modules/.installed")
    assert (code, "is too old, or says no version (forge Version: 1.5.12-stable): 1.7.1 is needed" in said) == (2, True)
    checkout.program("forge", "echo forge Version: 1.10.0-stable")
    assert checkout.make("chain/contracts/node_modules/.installed")[0] == 0
    modules = checkout.folder / "chain" / "contracts" / "node_modules" / "@foundry-rs"
    for name in ("anvil", "forge"):
        (link,) = modules.glob(f"*/bin/{name}")
        assert link.resolve() == checkout.programs / name
    assert checkout.make("-q", "chain/contracts/node_modules/.installed")[0] == 0, "it is not installed again"


@pytest.mark.parametrize("target", ["dashboard", "wheel", "up", "test"])
def test_node_is_asked_for_before_minutes_of_installation(checkout: Checkout, target: str) -> None:
    checkout.pip()
    checkout.program("node", 'case "$1" in --version) echo v18.19.0;; *) exit 1;; esac')
    checkout.write(TASKS)
    code, said = checkout.make(target)
    assert code == 2
    assert "Node.js 20.19, 22.12 or newer with npm is needed, and node is v18.19.0" in said
    assert checkout.asked == []
    assert not (checkout.folder / SERVED).exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is needed")
@pytest.mark.parametrize(
    ("version", "suffices"),
    [
        ("18.20.8", False), ("20.18.3", False), ("20.19.0", True), ("21.7.0", False), ("22.11.0", False),
        ("22.12.0", True), ("24.0.0", True),
    ],
)  # fmt: skip
def test_node_versions_that_suffice(checkout: Checkout, version: str, suffices: bool) -> None:
    node = shutil.which("node")
    change = f"Object.defineProperty(process.versions, 'node', {{ value: '{version}' }});"
    checkout.program("node", f'test "$1" = --version && echo v{version} || exec {node} -e "{change} $2"')
    checkout.installed(contracts=False)
    said = checkout.make("tools")[1]
    assert ("is needed" not in said) == suffices, said


def test_the_makefile_holds_for_make_itself() -> None:
    """No two recipes of a target, and no variable that is not there."""
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        ["make", "--warn-undefined-variables", "-n", "help"], cwd=root, capture_output=True, text=True, check=False
    )
    undefined = [line for line in ran.stderr.splitlines() if "undefined variable" in line or "overriding" in line]
    assert [line for line in undefined if "MAKE" not in line] == []


def test_make_test_runs_every_part_and_ends_with_the_table(checkout: Checkout) -> None:
    """Here npm installs no Vite and pip no pytest: these parts fail, and the contracts' tests pass all the same."""
    checkout.installed()
    checkout.pip(f'case "$1" in setup/*) exec {sys.executable} "$@";; esac')
    checkout.program("apt-get", "exit 1")
    checkout.program("id", "echo 0")
    code, said = checkout.make("test")
    assert code == 2
    _, _, table = said.partition("\npart ")
    rows = re.findall(r"^([\w-]+) +(passed|FAILED) +\d+\.\d$", table, re.MULTILINE)
    assert rows == [
        ("installed", "FAILED"), ("contracts-test", "passed"), ("python-test", "FAILED"), ("lint", "FAILED"),
        ("dashboard-test", "FAILED"), ("newest-flower", "FAILED"), ("demo-test", "FAILED"),
    ]  # fmt: skip
    assert "remove dashboard/node_modules, then run this again" in table
    assert "all of it: .consilium/tests/dashboard-test.log" in table
