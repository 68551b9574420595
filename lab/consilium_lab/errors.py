"""Errors of the demo, of a network that stays, and of the simulation of a task's economics."""

from __future__ import annotations

from typing import ClassVar

from consilium_core.faults import FaultError


class LabError(FaultError):
    """A run cannot start, or has failed."""

    MESSAGES: ClassVar = {
        "DemoDataMissing": (
            "{path}: {why}; pass the directory with the four processed.*.data files of UCI Heart Disease"
            " (https://archive.ics.uci.edu/dataset/45), or run the demo on wdbc, which needs no files"
        ),
        "DemoDataMalformed": "{path}, line {line}: {why}; fetch the file again from its source",
        "DemoTooManyParties": "{asked} {who} are not between 1 and the {at_most} that this data set can serve",
        "DemoTooLarge": (
            "{hospitals} hospitals and {voters} voters, each a process of its own, need about {needed:.1f} GiB of"
            " memory; {available:.1f} GiB are free: lower --hospitals and --voters, or end other programs"
        ),
        "FolderInUse": "{folder} is in use by another run; wait until it has ended, or name another folder by {option}",
        "DemoFailed": "{process} ended with exit code {code}: {error}; its whole log is in {logs}",
        "NetworkNotUp": "{process} {how}: {error}; its log and its errors are in {logs}",
        "RulesInvalid": "{field} {value}: {why}",
        "MoneyLost": "round {round}: {amount} millionths of a token are neither paid nor left; settlement is at fault",
    }
