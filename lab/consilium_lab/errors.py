"""Errors of the demo, of `consilium up`, and of the economics simulation."""

from __future__ import annotations

from typing import ClassVar

from consilium_core.faults import FaultError


class LabError(FaultError):
    """A run cannot start, or has failed."""

    MESSAGES: ClassVar = {
        "DemoDataMissing": (
            "{path}: {why}; pass a directory with the files of the data set (for heart: the four processed.*.data of"
            " https://archive.ics.uci.edu/dataset/45), or run the demo with --data wdbc, which needs no files"
        ),
        "DemoDataMalformed": "{path}, line {line}: {why}; download the file again from its source",
        "DemoTooManyParties": "{asked} {who}: this data set suffices for 1 to {at_most}; change the number",
        "SitesWrong": "{path}, column {column}: {why}",
        "DemoTooLarge": (
            "{hospitals} hospitals and {voters} voters, each in its own process, need about {needed:.1f} GiB of memory,"
            " but only {available:.1f} GiB are free: lower --hospitals and --voters, or end other programs"
        ),
        "FolderInUse": "another run uses {folder}: wait until it has ended, or name another folder with {option}",
        "DemoFailed": "{process} ended with exit code {code}: {error}; its log is in {logs}",
        "SimulationInvalid": (
            "{what} is given {given} times, and the task needs {least} to {most}: change the number, or the task file"
        ),
        "SumMismatched": "the sum of cohort {cohort} in round {round} is not the committed one: a bug in this program",
        "StarterLost": "the process that starts the others has ended (exit code {code}); see starter.err in the logs",
        "NetworkNotUp": "{process} {how}: {error}; its log and its errors are in {logs}",
        "RulesInvalid": "{field} {value}: {why}",
        "MoneyLost": "round {round}: {amount} millionths of a token are neither paid nor left: a bug in settlement",
    }
