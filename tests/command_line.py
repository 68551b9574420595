"""The command line in the tests' own process."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from consilium_cli.main import main


class CommandLine(Protocol):
    """Runs the command line in this process; returns exit code and everything said, on one line."""

    def __call__(self, *arguments: str) -> tuple[int, str]: ...


def refused(result: tuple[int, str], *words: str, code: int = 1) -> None:
    """The exit code is `code`, and all `words` were said."""
    assert result[0] == code, result[1]
    assert [word for word in words if word not in result[1]] == [], result[1]


def done(result: tuple[int, str], *words: str) -> None:
    refused(result, *words, code=0)


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def consilium(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["consilium", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        said = re.sub(r"[\s│╭╮╰╯─]+", " ", captured.out + captured.err)
        assert "Traceback" not in said
        code = ended.value.code
        return (code if isinstance(code, int) else int(code is not None)), said

    return run
