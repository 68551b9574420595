"""Bad beginnings: a command as a newcomer types it, after one thing went wrong, and the line that helps."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import pandas as pd
import psutil
import pytest
from checkout_driver import Checkout
from consilium_core.locks import alone
from patients import patients

WHOLE = "consilium simulate task.toml --table rows.csv --sites hospital"
PATH = "error \\(PathUnusable\\): .*"
SITES = "rows.csv has no column 'clinic': choose one of patient_id, hospital, age"


Change: TypeAlias = Callable[[pd.DataFrame], pd.DataFrame]


class Newcomer:
    """A newcomer's folder: rows.csv with patients of four hospitals, and to simulate also its drafted task."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self.folder, self.patch, self.stack = folder, patch, stack
        self.table()
        self._checkout: Checkout | None = None

    @property
    def checkout(self) -> Checkout:
        if self._checkout is None:
            self._checkout = Checkout(self.folder)
        return self._checkout

    def table(self, change: Change = lambda frame: frame, encoding: str = "utf-8", sep: str = ",") -> None:
        change(patients()).to_csv(self.folder / "rows.csv", index=False, encoding=encoding, sep=sep)

    def edit_task(self, old: str, new: str) -> None:
        path = self.folder / "task.toml"
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new, 1))

    def listen(self, port: int) -> None:
        taken = self.stack.enter_context(socket.socket())
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", port))
            taken.listen()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:  # taken by another program of this machine: all the same
                raise

    def refuse(self, call: str, number: int, below: str) -> None:
        """`os.mkdir` or `os.open` of paths below this folder fail."""
        real, start = getattr(os, call), str(self.folder / below)

        def failing(path: str | Path, *arguments: object, **more: object) -> object:
            if str(path).startswith(start):
                raise OSError(number, os.strerror(number), str(path))
            return real(path, *arguments, **more)

        self.patch.setattr(os, call, failing)


@dataclass(frozen=True)
class Beginning:
    """`went_wrong` prepares the folder. `line`: a regular expression of the fault, then the way out."""

    typed: str
    line: str
    code: int = 1
    went_wrong: Callable[[Newcomer], object] = lambda newcomer: None


# What goes wrong


def file(name: str, content: bytes | str = b"") -> Callable[[Newcomer], object]:
    raw = content.encode() if isinstance(content, str) else content
    return lambda newcomer: (newcomer.folder / name).write_bytes(raw)


def cell(row: int, column: str, value: str) -> Callable[[Newcomer], object]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame[column] = frame[column].astype(object)
        frame.loc[row, column] = value
        return frame

    return lambda newcomer: newcomer.table(change)


def column(name: str, value: str | None = None) -> Callable[[Newcomer], object]:
    """All cells of one value; None for no such column."""
    return lambda newcomer: newcomer.table(
        lambda frame: frame.drop(columns=name) if value is None else frame.assign(**{name: value})
    )


def rows(count: int) -> Callable[[Newcomer], object]:
    return lambda newcomer: newcomer.table(lambda frame: frame.head(count))


def saved(encoding: str = "utf-8", sep: str = ",") -> Callable[[Newcomer], object]:
    return lambda newcomer: newcomer.table(encoding=encoding, sep=sep)


def headless(newcomer: Newcomer) -> None:
    lines = (newcomer.folder / "rows.csv").read_text().splitlines(keepends=True)
    (newcomer.folder / "rows.csv").write_text("".join(lines[1:]))


def edited(old: str, new: str) -> Callable[[Newcomer], object]:
    return lambda newcomer: newcomer.edit_task(old, new)


def in_use(folder: str) -> Callable[[Newcomer], object]:
    return lambda newcomer: newcomer.stack.enter_context(
        alone(newcomer.folder / folder / "in-use.lock", AssertionError())
    )


def little_memory(newcomer: Newcomer) -> None:
    newcomer.patch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=700 << 20))


def missing(module: str, *importing: str) -> Callable[[Newcomer], object]:
    """Not installed; modules that import it have not been loaded."""

    def hide(newcomer: Newcomer) -> None:
        for name in importing:
            newcomer.patch.delitem(sys.modules, name, raising=False)
        newcomer.patch.setitem(sys.modules, module, None)

    return hide


def pip(says: str, then: str = "exit 1") -> Callable[[Newcomer], object]:
    return lambda newcomer: newcomer.checkout.pip(f'echo "{says}"; {then}')


def npm(says: str, code: int = 1) -> Callable[[Newcomer], object]:
    def fail(newcomer: Newcomer) -> None:
        newcomer.checkout.installed(contracts=False)
        newcomer.checkout.program("npm", f'echo "{says}"; exit {code}')

    return fail


def old(program: str, version: str) -> Callable[[Newcomer], object]:
    script = f'test "$1" = --version && {{ echo {version}; exit 0; }}; exit 1'
    return lambda newcomer: newcomer.checkout.program(program, script)


def gone(program: str) -> Callable[[Newcomer], object]:
    return lambda newcomer: (newcomer.checkout.programs / program).unlink()


PIP_SILENT = (
    "WARNING: Retrying (Retry(total=0)) after connection broken: /simple/\nERROR: No matching distribution found"
)
MAKE = [
    Beginning("make demo", r"Python 3\.11 or newer is needed, and python3 is Python 3\.9\.2: pass PYTHON=", 2,
              old("python3", "Python 3.9.2")),
    Beginning("make demo", r"Python 3\.11 or newer is needed, and python3 is missing: pass PYTHON=", 2,
              gone("python3")),
    Beginning("make test", r"Node\.js 20\.19.* is needed, and node is v18\.19\.0.*: install it", 2,
              old("node", "v18.19.0")),
    Beginning("make demo", r"Node\.js 20\.19.* is needed, and node is missing.*: install it", 2, gone("node")),
    Beginning("make up", r"npm is missing: install it, then run this again", 2, gone("npm")),
    Beginning("make demo TORCH=gpu", r"TORCH is cpu, cuda or the URL of an index, and not gpu: pass one of these", 2,
              pip("")),
    Beginning("make demo", r"error \(RegistrySilent\): .*registry of pip .*check the network, or set PIP_INDEX_URL", 2,
              pip(PIP_SILENT)),
    Beginning("make demo", r"error \(RegistrySilent\): .*of npm .*check the network, or set NPM_CONFIG_REGISTRY", 2,
              npm("npm error code ENOTFOUND")),
    Beginning("make demo", r"error \(DiskFull\): the disk is full \(.* GB free in .*\): free 3 GB", 2,
              pip("OSError: [Errno 28] No space left on device")),
    Beginning("make up", r"error \(DiskFull\): the disk is full .*: free 3 GB", 2, npm("npm error code ENOSPC")),
    Beginning("make demo", r"error \(MemoryShort\): memory ran out: end other programs", 2, pip("", "kill -9 $$")),
    Beginning("make demo", r"error \(CertificateUnknown\): .*companies' proxies: set PIP_CERT", 2,
              pip("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))")),
    Beginning("make demo", r"error \(PackageMissing\): .*this machine and Python 3\.\d+: .*pass PYTHON=", 2,
              pip("ERROR: No matching distribution found for flwr==1.41.0")),
    Beginning("make demo", r"error \(FolderNotWritable\): .*make this user the owner of", 2,
              npm("npm error code EACCES")),
    Beginning("make demo", r"npm has no build of Foundry for this machine: install anvil and forge by hand", 2,
              npm("added 1 package", 0)),
]  # fmt: skip
TABLES = [
    Beginning("consilium task new --from patient.csv", "File 'patient.csv' does not exist", 2),
    Beginning("consilium task new --from .", "File '.' is a directory", 2),
    Beginning("consilium task new rows.csv", "Missing option '--from'", 2),
    Beginning("consilium task new --from rows.csv", "FileKindWrong.*an Excel workbook.*save it as CSV", 1,
              file("rows.csv", b"PK\x03\x04\x14\0")),
    Beginning("consilium task new --from rows.csv", "FileKindWrong.*a web page.*save it as CSV", 1,
              file("rows.csv", "<!DOCTYPE html><title>Sign in</title>")),
    Beginning("consilium task new --from rows.csv", "DataFileEmpty.*contains no rows; write a header line", 1,
              file("rows.csv")),
    Beginning("consilium task new --from rows.csv", "EncodingWrong.*it is UTF-16.*save it as UTF-8", 1,
              saved(encoding="utf-16")),
    Beginning("consilium task new --from rows.csv", "HeaderMissing.*add a header line", 1, headless),
    Beginning("consilium task new --from rows.csv --label dies", "no column 'dies': choose one of .*died"),
    Beginning("consilium task new --from rows.csv --label died", "has 1 different values.*choose another label", 1,
              column("died", "yes")),
    Beginning("consilium task new --from rows.csv --sites clinic", SITES),
    Beginning("consilium task new --from rows.csv", "names 1 hospitals, and 2 to 256.*choose another column", 1,
              column("hospital", "north")),
    Beginning("consilium task new --from rows.csv --leave-out ages", "no column 'ages': choose one of"),
    Beginning("consilium task new --from rows.csv --epsilon lots", "'lots' is no number above 0: write one such", 2),
    Beginning("consilium task new --from rows.csv --epsilon 0", "'0' is no number above 0: write one such as 8", 2),
    Beginning("consilium task new --from rows.csv", "OutputTaken.*task.toml exists already: move it away, or pass", 1,
              file("task.toml")),
    Beginning("consilium task new --from rows.csv --output rows.csv/t.toml", PATH + "name another path"),
]  # fmt: skip
SIMULATING = [
    Beginning("consilium simulate tsk.toml --table rows.csv --sites hospital", "tsk.toml cannot be read.*pass the"),
    Beginning("consilium simulate rows.csv --sites hospital", "rows.csv is a table.*`consilium task new", 2),
    Beginning("consilium simulate task.toml", "pass a --site and a --voter for each, or one --table with --sites", 2),
    Beginning("consilium simulate task.toml --table rows.csv", "--sites: pass the column of --table that names", 2),
    Beginning(f"{WHOLE} --site a=rows.csv", "has all rows: leave out --site and --voter", 2),
    Beginning("consilium simulate task.toml --site north.csv --voter v=rows.csv", "write it as north=north.csv", 2),
    Beginning(WHOLE.replace("hospital", "clinic"), SITES),
    Beginning(WHOLE, "no column 'hospital': choose one of", 1, column("hospital")),
    Beginning(WHOLE.replace("hospital", "2"), "2 hospitals take part, and the task needs 3 to 4: change --sites"),
    Beginning(WHOLE.replace("hospital", "0"), "0 hospitals: this data set suffices for 1 to 200; change the number"),
    Beginning(WHOLE.replace("hospital", "4"), "RowsTooFew.*: bring more rows of each class", 1, rows(6)),
    Beginning(f"{WHOLE} --voters 60", "60 voters: this data set suffices for 1 to 28; change the number"),
    Beginning(WHOLE, "row 7 names no hospital: add it", 1, cell(6, "hospital", "")),
    Beginning(WHOLE, "line 8, column died: the label is not one of.*add codes", 1, cell(6, "died", "maybe")),
    Beginning(WHOLE, "line 8, column age: the cell is not a number; write a number", 1, cell(6, "age", "old")),
    Beginning(WHOLE, r"columns are not the expected ones \(missing: age\); add", 1, column("age")),
    Beginning(WHOLE, "separated by ';', not by ','; write delimiter", 1, saved(sep=";")),
    Beginning(WHOLE, r"not TOML: .*\(at line 1, column 8\)", 1, file("task.toml", "name = \n")),
    Beginning(WHOLE, "task file is invalid: rounds.round: Extra inputs", 1, edited("rounds = ", "round = ")),
    Beginning(WHOLE, "'forest' .* does not match any of the expected tags: 'logistic', 'mlp'", 1,
              edited('name = "logistic"', 'name = "forest"')),
    Beginning(f"{WHOLE} --output rows.csv/r.json", PATH + "name another path"),
]  # fmt: skip
NETWORKS = [
    Beginning("consilium dmeo", "No such command 'dmeo'. Did you mean 'demo'", 2),
    Beginning("consilium demo --round 3", "No such option '--round'.*'--rounds'", 2),
    Beginning("consilium demo --data table", "--data table needs --file with the table", 2),
    Beginning("consilium demo --file rows.csv", "belong to --data table: add it", 2),
    Beginning("consilium demo --label died", "belong to --data table --file PATH: add them", 2),
    Beginning("consilium demo --data table --file rows.csv --sites clinic", SITES),
    Beginning("consilium demo --data table --file rows.csv --sites sex", "3 hospitals .* are 2: .*--no-masks", 2),
    Beginning("consilium demo --data table --file rows.csv --hospitals 3", "RowsTooFew.*bring more rows", 1, rows(6)),
    Beginning("consilium demo --data heart", "needs --data-dir.*`consilium data fetch heart --to DIR` gets them", 2),
    Beginning("consilium demo --data heart --data-dir none", "DemoDataMissing.*none: .*`consilium data fetch heart"),
    Beginning("consilium demo --cohorts 3", "9 hospitals in all, but there are 6: lower --cohorts", 2),
    Beginning("consilium demo --attack flip", "KIND is one of sign-flip, label-flip", 2),
    Beginning("consilium demo --output rows.csv", PATH + "this is a file: name another path"),
    Beginning("consilium demo --output out", PATH + "Permission denied.*give this user access to it", 1,
              lambda newcomer: newcomer.refuse("mkdir", errno.EACCES, "out")),
    Beginning("consilium demo --output out", "error \\(DiskFull\\): .*free some space, and run the command again", 1,
              lambda newcomer: newcomer.refuse("open", errno.ENOSPC, "out")),
    Beginning("consilium demo --output out", "FolderInUse.*wait until it has ended, or .* with --output", 1,
              in_use("out")),
    Beginning("consilium demo --chain-port 18545", r"port 18545 for .* \(--chain-port\) is in use; stop", 1,
              lambda newcomer: newcomer.listen(18545)),
    Beginning("consilium demo", r"ExtraMissing.*psutil is not installed.*pip install 'consilium\[demo\]'", 1,
              missing("psutil", "consilium_lab.demo.run", "consilium_lab.demo.capacity")),
    Beginning("consilium demo", r"DemoTooLarge.*only 0\.7 GiB are free: lower --hospitals", 1, little_memory),
    Beginning("consilium up --home up", "FolderInUse.*or name another folder with --home", 1, in_use("up")),
    Beginning("consilium up --home up --port 18080", r"port 18080 for the API \(--port\) is in use; stop", 1,
              lambda newcomer: newcomer.listen(18080)),
    Beginning("consilium up --home up --port 18081 --chain-port 18545", "port 18545 for.*choose another", 1,
              lambda newcomer: newcomer.listen(18545)),
    Beginning("consilium up --home up", "DemoTooLarge.*lower --hospitals", 1, little_memory),
    Beginning("consilium up --home rows.csv", PATH + "this is a file: name another path"),
]  # fmt: skip
