"""Completion in a shell: each shell sets variables, runs `consilium`, and reads the words that it may offer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("consilium")
SHELLS = ("bash", "zsh", "fish")


def run(*arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [COMMAND, *arguments], env=os.environ | variables, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def completed(line: str, shell: str) -> list[str]:
    """The words that a shell offers after `line`."""
    if shell == "bash":
        words = line.split(" ")
        told = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    else:
        told = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    said = run(_CONSILIUM_COMPLETE=f"complete_{shell}", **told)
    if shell != "zsh":
        return [one.partition("\t")[0] for one in said.splitlines()]
    # _arguments '*: :(("simulate":"its help" …))'
    return [one.split('"')[1] for one in said.splitlines() if one.startswith('"') or '(("' in one]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "offered"),
    [("consilium si", ["simulate"]), ("consilium hospital ch", ["check-data"]), ("consilium chain dep", ["deploy"])],
)
def test_a_command_is_completed(shell: str, line: str, offered: list[str]) -> None:
    assert completed(line, shell) == offered


def test_options_of_a_simulation_are_completed_without_the_word_task() -> None:
    assert {"--table", "--sites", "--site", "--seed"} <= set(completed("consilium simulate task.toml --", "bash"))


def test_completing_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom consilium_cli.main import main\nsys.argv = ['consilium']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print({'numpy', 'torch', 'matplotlib', 'web3', 'pandas'} & set(sys.modules))"
    )
    told = {"_CONSILIUM_COMPLETE": "complete_bash", "COMP_WORDS": "consilium\nsi", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | told, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["simulate", "set()"]


# Typer detects the shell that it runs in; with this variable it takes the shell's name as an argument.
NAMED = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}


@pytest.mark.parametrize("shell", SHELLS)
def test_show_completion_prints_a_script_for_the_shell(shell: str) -> None:
    assert f"_CONSILIUM_COMPLETE=complete_{shell}" in run("--show-completion", shell, **NAMED)


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".bash_completions/consilium.sh"),
        ("zsh", ".zfunc/_consilium"),
        ("fish", ".config/fish/completions/consilium.fish"),
    ],
)
def test_install_completion_writes_the_shells_own_file(shell: str, file: str, tmp_path: Path) -> None:
    run("--install-completion", shell, HOME=str(tmp_path), **NAMED)
    assert f"_CONSILIUM_COMPLETE=complete_{shell}" in (tmp_path / file).read_text()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_by_the_installed_script(tmp_path: Path) -> None:
    run("--install-completion", "bash", HOME=str(tmp_path), **NAMED)
    asked = 'COMP_WORDS=(consilium si); COMP_CWORD=1; _consilium_completion consilium; echo "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", f"source {tmp_path}/.bashrc; {asked}"],
        env=os.environ | {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "simulate\n"
