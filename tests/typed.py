"""Runs commands as a reader types them: in a shell, in a folder with the reader's files, at a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from terminal_driver import terminal

BIN = Path(sys.executable).parent


def typed(folder: Path, command: str, answers: Mapping[str, str] | None = None, code: int = 0) -> str:
    """Its output. The home directory is `folder`/home. `answers`: by question, in the order in which a terminal asks
    them; without them there is no terminal. Raises AssertionError at another exit code.
    """
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(home), "COLUMNS": "200"}
    shell = ["bash", "-c", command]
    if answers is None:
        done = subprocess.run(
            shell, cwd=folder, env=environment, timeout=200, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        found, shown = done.returncode, done.stdout
    else:
        with terminal(shell, folder, environment) as screen:
            for question, answer in answers.items():
                screen.wait_for(question)
                screen.type(f"{answer}\n")
            found, shown = screen.wait(), screen.shown
    assert found == code, f"{command}: exit code {found}\n{shown}"
    return shown
