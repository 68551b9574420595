"""Errors of the demo.

DemoError
├── DemoDataMissing      a directory or file of the demo's data set is not there
├── DemoDataMalformed    a line of the raw data is not what the data set's description says
├── DemoTooManyParties   more hospitals or voters than the data set has rows for
├── DemoTooLarge         more hospitals and voters than this machine has memory for
├── FolderInUse          another demo, or another network, runs in the same folder
└── DemoFailed           a process of the demo ended with an error
"""

from __future__ import annotations

from pathlib import Path


class DemoError(Exception):
    """Root of the demo's errors."""


class DemoDataMissing(DemoError):
    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(
            f"{path}: {why}; pass the directory with the four processed.*.data files of UCI Heart Disease"
            " (https://archive.ics.uci.edu/dataset/45), or run the demo on wdbc, which needs no files"
        )


class DemoDataMalformed(DemoError):
    """`line` counts from 1. Cells are not repeated, as nowhere in this project."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        self.path, self.line, self.why = path, line, why
        super().__init__(f"{path}, line {line}: {why}; fetch the file again from its source")


class DemoTooManyParties(DemoError):
    def __init__(self, who: str, asked: int, at_most: int) -> None:
        self.who, self.asked, self.at_most = who, asked, at_most
        super().__init__(f"{asked} {who} are not between 1 and the {at_most} that this data set can serve")


class DemoTooLarge(DemoError):
    """Amounts in MiB."""

    def __init__(self, hospitals: int, voters: int, needed: int, available: int) -> None:
        self.needed, self.available = needed, available
        super().__init__(
            f"{hospitals} hospitals and {voters} voters, each a process of its own, need about {needed / 1024:.1f} GiB"
            f" of memory; {available / 1024:.1f} GiB are free: lower --hospitals and --voters, or end other programs"
        )


class FolderInUse(DemoError):
    """`option` names another folder."""

    def __init__(self, folder: Path, option: str) -> None:
        self.folder = folder
        super().__init__(
            f"{folder} is in use by another run; wait until it has ended, or name another folder by {option}"
        )


class DemoFailed(DemoError):
    def __init__(self, process: str, code: int, last_words: str, logs: Path) -> None:
        self.process, self.code = process, code
        super().__init__(f"{process} ended with exit code {code}: {last_words}; its whole log is in {logs}")
