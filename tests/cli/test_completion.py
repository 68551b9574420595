"""Completion in a shell: each shell sets variables, runs `consilium`, and reads the words that it may offer."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_the_shell_is_shown(shell: str, tmp_path: Path) -> None:
    """Typer asks for the name of the shell that it runs in, unless a variable says that it is tested."""
    script = run("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_CONSILIUM_COMPLETE=complete_" in script
