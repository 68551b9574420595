"""Errors of the demo, of `consilium up`, and of the economics simulation."""

from __future__ import annotations

from typing import ClassVar

from consilium_core.faults import FaultError


class LabError(FaultError):
    """A run cannot start, or has failed."""

    MESSAGES: ClassVar = {
        "DemoDataMissing": (
            "{path}: {why}; --data {data} needs {needs}: `consilium data fetch {data} --to DIR` gets them, or run the"
            " demo with --data wdbc, which needs no files"
        ),
        "DemoDataMalformed": "{path}, line {line}: {why}; download the file again from its source",
        "DemoTooManyParties": "{asked} {who}: this data set suffices for 1 to {at_most}; change the number",
        "LicenceNotAccepted": "nothing was downloaded: answer y, or pass --yes to accept the licence",
        "DataUnreachable": (
            "{url} does not answer ({why}). Without a network, get this file elsewhere, put it into {folder} as {file},"
            " and run `consilium data fetch {data}` again; what was downloaded so far stays"
        ),
        "DataWrong": (
            "{file} was refused: from {source} it has the SHA-256 {found} instead of {wanted}. Run the command again;"
            " if it stays so, the publisher has changed the file: tell this project"
        ),
        "DataTooLong": "{url} sends more than {limit:,} bytes, and is not the expected file: nothing was kept",
        "DataUnreadable": "{path} is damaged, or not the expected file: remove it, and fetch it again",
        "RowsTooFew": "too few rows to hold out a third of each class for voters: bring more rows of each class",
        "SitesWrong": "{path}, column {column}: {why}",
        "DemoTooLarge": (
            "{hospitals} hospitals and {voters} voters, each in its own process, need about {needed:.1f} GiB of memory,"
            " but only {available:.1f} GiB are free: lower --hospitals and --voters, or end other programs"
        ),
        "FolderInUse": "another run uses {folder}: wait until it has ended, or name another folder with {option}",
        "DemoFailed": "{process} ended with exit code {code}: {error}; its log is in {logs}",
        "SimulationInvalid": (
            "{given} {who} take part, and the task needs {least} to {most}: change {option}, or the numbers in the task"
            " file"
        ),
        "SumMismatched": "the sum of cohort {cohort} in round {round} is not the committed one: a bug in this program",
        "GridUnknown": "{axis!r} is nothing that a grid varies: name some of {known}",
        "SettingOutOfRange": "{setting} cannot be {given:g}: choose {needed}",
        "StartNotSimulated": "the task starts from the model of task {task}, and a simulation has no chain to read it"
        " from: remove [start] from the file, and simulate again",
        "NetworkNotUp": "{process} {how}: {error}; its log and its errors are in {logs}",
        "RulesInvalid": "{field} {value}: {why}",
        "MoneyLost": "round {round}: {amount} millionths of a token are neither paid nor left: a bug in settlement",
    }
