"""Errors of the client room.

ClientError
├── DataError                   a table, or the mapping to it, is not what the task's schema asks for
│   ├── MappingInvalid          a mapping is malformed, or does not fit the task or the file
│   ├── DataFileMissing         no readable file at the path
│   ├── DataFileMalformed       the file is not CSV
│   │   ├── FileKindWrong       it is of another kind: a spreadsheet, an archive, …
│   │   ├── EncodingWrong       its text is not in the encoding that was said
│   │   ├── NullByte            it holds a byte that no text has
│   │   ├── LineTooLong         a line or a cell is longer than any table's
│   │   ├── QuoteNotClosed      a quotation mark is opened, and the file ends
│   │   ├── DelimiterWrong      its lines have one column, and another delimiter
│   │   ├── HeaderMissing       its first line names none of the columns
│   │   └── LineWidthWrong      a line has more or fewer fields than the first
│   ├── ParquetUnreadable       the file is Parquet, and encrypted or damaged
│   ├── DataFileEmpty           no row
│   ├── ColumnsWrong            columns missing, unexpected or named twice
│   ├── ColumnTypeWrong         a Parquet column holds dates, decimals, lists, …
│   ├── ColumnAllMissing        no row has a value in a column
│   ├── CellError               one cell is at fault: carries file, line or row, and column
│   │   ├── ValueNotNumeric     it holds something that is not a number
│   │   │   ├── ValueIsDate     … but a date or a time
│   │   │   ├── ThousandsSeparator  … but digits in groups
│   │   │   └── DecimalMarkWrong    … but a number with the other decimal mark
│   │   ├── ValueNotFinite      it says nan or inf, which is not the same as being empty
│   │   ├── CodeUnknown         it holds a text that the mapping's codes do not have
│   │   └── LabelOutOfSchema    a label is neither 0 nor 1
│   ├── OneClassOnly            every label is the same, where both classes are needed
│   ├── TooFewRows              fewer rows than asked for
│   └── TooManyRows             more rows than round 0 can count
├── NodeError
│   ├── FrameMalformed          bytes between relay and node are not a frame
│   ├── RetreatMismatched       what a round's canaries are said to take back is not what the record gives
│   ├── PendingUpdateLost       a committed update is no longer on this node's disk
│   ├── SealingKeyLost          the key to what others seal for this hospital is not the one that it announced
│   ├── MaskingTooSmall         too few hospitals of the cohort mask with this one
│   ├── MaskingChanged          the chain names other hospitals than those masked with, or answered for, before
│   ├── NotASurvivor            this hospital's update is not in the sum that is to be unmasked
│   ├── BallotLost              a committed ballot is no longer on this node's disk
│   ├── HeldOutLost             what a voter's rows were committed under is no longer on its disk
│   ├── NothingEvaluated        a ballot was cast without evaluating anything: there is nothing to open
│   └── TransportKeyInvalid     the Flower node key is missing or of another kind
├── ConsentError                something is not what this hospital's owner has allowed
│   ├── HomeMissing             no home was made in the folder
│   ├── HomeTaken               there is a home in the folder already
│   ├── PolicyInvalid           the policy file is missing, malformed or incomplete
│   ├── NotAllowed              the policy does not allow a task
│   ├── NotApproved             the owner has not said yes to a task
│   ├── ApprovalInvalid         the approval's file is malformed
│   ├── ApprovalStale           another task, or another version of it, was approved
│   ├── AlreadyRunning          another process runs this task's node in the same home
│   ├── NotConfirmed            nobody said yes
│   ├── WhichTask               no task was named, and not exactly one is approved
│   └── CertificateInvalid      a certificate's file is missing, or is none
├── AuditError
│   ├── AuditUnwritable         what is to leave cannot be written down first, so it does not leave
│   ├── AuditUnreadable         no readable log or export at the path
│   ├── AuditMalformed          a line is no entry, or a file no export
│   ├── AuditBroken             a line does not follow the one before it
│   ├── AuditForged             an export is not what its hospital signed
│   ├── AuditRewritten          an export does not go on from an older one
│   └── AuditIncomplete         the chain holds what the log does not
├── PrivacyError                a task's or this hospital's own bound on what a row may cost
│   ├── EpsilonUnreachable      no amount of noise keeps the task's rounds within its epsilon
│   ├── BudgetExceeded          one more round would cost rows more than is allowed
│   ├── ChargeChanged           a round was charged before, with other noise
│   ├── RoundPassed             a round was charged before, and a later one since
│   └── EpsilonLedgerInvalid    the file of what was spent cannot be read
├── StatisticsOutOfRange        a hospital brought round 0 what cannot be counted
├── StatisticsInvalid           the summed statistics of round 0 are no numbers
├── OpeningMalformed            a file is not what `consilium voter open-evaluation` writes
└── ModelError
    ├── FingerprintMalformed    bytes are no fingerprint of a batch of this shape
    ├── UpdateNotFinite         parameters, or what a model makes of them, hold nan or inf
    └── ShapeMismatch           an array has another shape than the task gives it

No message repeats a cell of anybody's table: messages end up in logs, and logs travel. They say line (of a Parquet
file: row) and column, both counted from 1. For the same reason parsers here never chain the error of `float`, which
quotes what it could not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

NAMES_SHOWN = 10  # of columns, in one message


class ClientError(Exception):
    """Root of this room's errors."""


class DataError(ClientError):
    """A table is not what the task's schema asks for."""


class MappingInvalid(DataError):
    """What is wrong, and where: from the mapping's author's own file, so texts of it may be shown."""


class DataFileMissing(DataError):
    def __init__(self, path: Path, why: str = "there is no such file") -> None:
        self.path, self.why = path, why
        super().__init__(f"cannot read {path}: {why}; pass the path of a CSV or Parquet file that this user may read")


class DataFileMalformed(DataError):
    """`line` counts from 1, the header being line 1; None where the fault has no line."""

    def __init__(
        self,
        path: Path,
        why: str,
        line: int | None = None,
        way_out: str = "save the table as comma-separated UTF-8 with one header line",
    ) -> None:
        self.path, self.why, self.line = path, why, line
        where = f"{path}, line {line}" if line is not None else str(path)
        super().__init__(f"{where}: {why}; {way_out}")


class FileKindWrong(DataFileMalformed):
    """`kind`: what the file's first bytes say it is."""

    def __init__(self, path: Path, kind: str) -> None:
        self.kind = kind
        super().__init__(
            path, f"this is {kind}, not CSV", way_out="open or unpack it, and save as CSV (UTF-8) or Parquet"
        )


class EncodingWrong(DataFileMalformed):
    """`encoding`: the one that was expected."""

    def __init__(self, path: Path, encoding: str, line: int, why: str | None = None) -> None:
        self.encoding = encoding
        super().__init__(
            path,
            why or f"the text is not {encoding.upper()}",
            line,
            "save it as UTF-8, or, where an older Windows program wrote it, say encoding under [file] of a mapping",
        )


class NullByte(DataFileMalformed):
    def __init__(self, path: Path, line: int) -> None:
        super().__init__(path, "there is a zero byte, which no text has: the file is damaged or no text", line)


class LineTooLong(DataFileMalformed):
    """`what` is "line" or "cell", `at_most` its bound in characters."""

    def __init__(self, path: Path, line: int, what: Literal["line", "cell"], at_most: int) -> None:
        self.what, self.at_most = what, at_most
        super().__init__(
            path,
            f"a {what} has more than {at_most} characters",
            line,
            "check that the file is a table; leave out columns of free text or images",
        )


class QuoteNotClosed(DataFileMalformed):
    """`line` is the one on which the row begins that the quotation mark swallows the rest of the file into."""

    def __init__(self, path: Path, line: int) -> None:
        super().__init__(
            path,
            "a quotation mark is opened in the row that begins here, and never closed",
            line,
            'close it, or write a quotation mark that belongs to a text twice ("")',
        )


class DelimiterWrong(DataFileMalformed):
    def __init__(self, path: Path, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(
            path,
            f"columns seem to be separated by {found!r}, not by {expected!r}",
            1,
            f"say delimiter = {_toml(found)} under [file] of a mapping, or save with {expected!r} between columns",
        )


class HeaderMissing(DataFileMalformed):
    def __init__(self, path: Path) -> None:
        super().__init__(
            path,
            "the first line names none of the task's columns, nor of those that a mapping names for them",
            1,
            "write a header line with the columns' names, or say under [columns] of a mapping which ones they are"
            " (for a file without a header line: header = false, and their positions)",
        )


class LineWidthWrong(DataFileMalformed):
    def __init__(self, path: Path, line: int, found: int, expected: int) -> None:
        self.found, self.expected = found, expected
        super().__init__(
            path,
            f"{found} fields where the first line has {expected}",
            line,
            "put cells that hold the delimiter into quotation marks, and remove titles and sums around the table",
        )


class ParquetUnreadable(DataError):
    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path}: this is Parquet, but {why}; export it again, unencrypted, or save it as CSV (UTF-8)")


class DataFileEmpty(DataError):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path} holds no rows; write a header line and at least one row below it")


class ColumnsWrong(DataError):
    def __init__(self, path: Path, missing: Sequence[str], unexpected: Sequence[str], duplicate: Sequence[str]) -> None:
        self.path = path
        self.missing, self.unexpected, self.duplicate = tuple(missing), tuple(unexpected), tuple(duplicate)
        faults = (("missing", self.missing), ("unexpected", self.unexpected), ("named twice", self.duplicate))
        shown = "; ".join(f"{fault}: {shortened(names)}" for fault, names in faults if names)
        super().__init__(
            f"{path}: the columns are not those wanted ({shown}); add, remove or rename these columns, or say in a"
            " mapping which of the file's columns are the task's"
        )


class ColumnTypeWrong(DataError):
    """`column` of the file holds `kind`, a type of Arrow's."""

    def __init__(self, path: Path, column: str, kind: str) -> None:
        self.path, self.column, self.kind = path, column, kind
        super().__init__(
            f"{path}, column {column} holds {kind}; export it as whole numbers, floating point, booleans or text"
        )


class ColumnAllMissing(DataError):
    def __init__(self, path: Path, column: str, called: str = "") -> None:
        self.path, self.column = path, column
        super().__init__(
            f"{path}, {_column(column, called)}: no row has a value that the task knows; check the mapping's codes and"
            f" missing, or, if this hospital does not record it, say {column} = {{ absent = true }} under [columns]"
        )


class CellError(DataError):
    """One cell is at fault. `row` is its line in a CSV file, its row in Parquet (`counted` says which)."""

    fault: ClassVar[str]
    way_out: ClassVar[str]

    def __init__(
        self, path: Path, row: int, column: str, counted: Literal["line", "row"] = "line", called: str = ""
    ) -> None:
        self.path, self.row, self.column, self.counted = path, row, column, counted
        super().__init__(f"{path}, {counted} {row}, {_column(column, called)}: {self.fault}; {self.way_out}")


class ValueNotNumeric(CellError):
    fault = "the cell is not a number"
    way_out = (
        "write a number with a decimal point, or leave the cell empty if the value is missing; codes that stand for"
        " numbers, and texts that mean missing, go into a mapping"
    )


class ValueIsDate(ValueNotNumeric):
    fault = "the cell is a date or a time, where a number belongs"
    way_out = "check which column this is, and export what the task asks for (an age, say, in years)"


class ThousandsSeparator(ValueNotNumeric):
    fault = "the cell is not a number: its digits seem to stand in groups"
    way_out = (
        "export without separators between thousands; if the mark is the decimal one, say decimal under [file] of a"
        " mapping"
    )


class DecimalMarkWrong(ValueNotNumeric):
    fault = "the cell is not a number: its decimal mark is not the one expected"
    way_out = 'say decimal = "," under [file] of a mapping (or leave it out for points), the same for all cells'


class ValueNotFinite(CellError):
    fault = "the cell is not a finite number"
    way_out = "leave the cell empty (or write ?) if the value is missing"


class CodeUnknown(CellError):
    fault = "the mapping's codes for this column do not have what the cell holds"
    way_out = "add it to the column's codes or, if it means that the value is missing, to its missing"


class LabelOutOfSchema(CellError):
    fault = "the label is neither 0 nor 1"
    way_out = "write 0 or 1 or give the mapping codes for it, and remove rows without a label"


class OneClassOnly(DataError):
    def __init__(self, path: Path, label: str, present: int) -> None:
        self.path, self.label, self.present = path, label, present
        super().__init__(
            f"{path}: every label {label} is {present}; held-out data needs rows of both classes: add rows of the other"
        )


class TooFewRows(DataError):
    def __init__(self, rows: int, at_least: int) -> None:
        self.rows, self.at_least = rows, at_least
        super().__init__(f"{rows} rows are fewer than the {at_least} needed; add rows or stay out of this task")


class TooManyRows(DataError):
    def __init__(self, rows: int, at_most: int) -> None:
        self.rows, self.at_most = rows, at_most
        super().__init__(
            f"the table has {rows} rows or more, and the most that one hospital may bring is {at_most};"
            " draw a sample, or join as several hospitals"
        )


class PrivacyError(ClientError):
    """A task's, or this hospital's own, bound on what a row may cost."""


class EpsilonUnreachable(PrivacyError):
    def __init__(self, epsilon: float, delta: float, steps: int) -> None:
        self.epsilon, self.delta, self.steps = epsilon, delta, steps
        super().__init__(
            f"no noise keeps {steps} steps of training within epsilon {epsilon:g} at delta {delta:g}, as it is counted"
            " here: the operator has to raise epsilon, or delta"
        )


class BudgetExceeded(PrivacyError):
    """`spent` and `would_be`, with the round in question, are epsilons at `delta`; `whose` budget says of what."""

    def __init__(self, whose: str, spent: float, would_be: float, allowed: float, delta: float) -> None:
        self.whose, self.spent, self.would_be, self.allowed, self.delta = whose, spent, would_be, allowed, delta
        super().__init__(
            f"{whose} allows epsilon {allowed:g} at delta {delta:g}; {spent:.4g} is spent, and this would make it"
            f" {would_be:.4g}: sit out"
        )


class ChargeChanged(PrivacyError):
    def __init__(self, task: str, round_: int, charged: str, now: str) -> None:
        self.task, self.round, self.charged, self.now = task, round_, charged, now
        super().__init__(
            f"round {round_} of task {task} was charged as {charged} and would now be {now}: rows or task file changed"
            " since; sit this round out"
        )


class RoundPassed(PrivacyError):
    """As where the chain takes back a whole round."""

    def __init__(self, task: str, round_: int) -> None:
        self.task, self.round = task, round_
        super().__init__(
            f"round {round_} of task {task} was charged, and a later one since, so that its update may have left: a"
            " second one was not paid for; sit this round out"
        )


class EpsilonLedgerInvalid(PrivacyError):
    def __init__(self, path: Path, line: int) -> None:
        self.path, self.line = path, line
        super().__init__(
            f"{path}, line {line}, is no charge: restore the file from a backup that knows all private rounds;"
            " without it nobody can say what the rows have cost"
        )


def shortened(names: Sequence[str]) -> str:
    """Names in a row, the first few of many."""
    shown = ", ".join(name or "(no name)" for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"


def _column(column: str, called: str) -> str:
    return f"column {column} ({called} in the file)" if called not in ("", column) else f"column {column}"


def _toml(text: str) -> str:
    return '"\\t"' if text == "\t" else f'"{text}"'


class StatisticsOutOfRange(ClientError):
    def __init__(self, task: int) -> None:
        self.task = task
        super().__init__(f"the statistics of task {task} hold a value out of range: leave the task, it has no model")


class StatisticsInvalid(ClientError):
    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(f"value {index} of the summed statistics is not finite; check the round 0 that was published")


class OpeningMalformed(ClientError):
    """`why` names the field, and never what is in it."""

    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(
            f"{path}: {why}; pass a file as `consilium voter open-evaluation` wrote it, or ask the voter for another"
        )


class ModelError(ClientError):
    """Parameters or arrays do not fit the task's model."""


class FingerprintMalformed(ModelError):
    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"not a fingerprint of this batch: {why}; it was not made from these rows and models")


class UpdateNotFinite(ModelError):
    """`what` names the array (parameters, base model, predictions)."""

    def __init__(self, what: str, bad: int, of: int) -> None:
        self.what, self.bad, self.of = what, bad, of
        super().__init__(
            f"{bad} of {of} values of the {what} are not finite;"
            " lower the task's learning rate or epochs if these are your own, else refuse the model"
        )


class ShapeMismatch(ModelError):
    def __init__(self, what: str, expected: tuple[int | str, ...], found: tuple[int, ...]) -> None:
        self.what, self.expected, self.found = what, expected, found
        super().__init__(
            f"the {what} have shape {found}, but the task makes it {expected};"
            " check that model, data and task file belong together"
        )


class NodeError(ClientError):
    """A node cannot go on with a round."""


class FrameMalformed(NodeError):
    pass


class RetreatMismatched(NodeError):
    """`published` and `expected`: digests of the commitments to what the round's canaries take back, 32 bytes."""

    def __init__(self, round_: int, published: bytes, expected: bytes) -> None:
        self.round, self.published, self.expected = round_, published, expected
        super().__init__(
            f"the canaries of round {round_} are said to take back {published.hex()}, but the record gives"
            f" {expected.hex()}; vote that this round does not match"
        )


class CulpritsMismatched(NodeError):
    """`named` by the aggregator, and `found` by this node: hospitals' indices."""

    def __init__(self, round_: int, named: list[int], found: list[int]) -> None:
        self.round, self.named, self.found = round_, named, found
        super().__init__(
            f"round {round_} has cohorts without a sum, and hospitals {named} are named for it, but the evidence gives"
            f" {found}; vote that this round does not match"
        )


class PendingUpdateLost(NodeError):
    def __init__(self, round_: int) -> None:
        self.round = round_
        super().__init__(
            f"the update committed in round {round_} is not on this disk any more; the round goes on without"
        )


class SealingKeyLost(NodeError):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"{path} is not the sealing key that this hospital announced when it joined: restore the file from a"
            " backup; without it nothing can be unmasked with this hospital's help"
        )


class MaskingTooSmall(NodeError):
    """With fewer hospitals the sum would say too much about this one's update."""

    def __init__(self, round_: int, hospitals: int) -> None:
        self.round, self.hospitals = round_, hospitals
        super().__init__(f"only {hospitals} hospitals of the cohort mask in round {round_}; this one uploads nothing")


class MaskingChanged(NodeError):
    """`what` is "masked" or "answered": done once for one set of hospitals, and for no other."""

    def __init__(self, round_: int, what: str) -> None:
        self.round, self.what = round_, what
        super().__init__(
            f"the chain names other hospitals than those that this node {what} for in round {round_}; both together"
            " could show its update, so it does nothing more in this round"
        )


class NotASurvivor(NodeError):
    def __init__(self, round_: int) -> None:
        self.round = round_
        super().__init__(f"this hospital is not among the survivors of round {round_}, and has no part in their sum")


class BallotLost(NodeError):
    def __init__(self, round_: int) -> None:
        self.round = round_
        super().__init__(f"the ballot of round {round_} is not on this disk any more; it cannot be revealed")


class HeldOutLost(NodeError):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"{path} does not give the secret that this voter's rows were committed under; put it back as it was, for"
            " without it no evaluation of the task can be shown"
        )


class NothingEvaluated(NodeError):
    def __init__(self, round_: int) -> None:
        self.round = round_
        super().__init__(
            f"no model was evaluated for the ballot of round {round_}: it is of the statistics, or says that what was"
            " published does not match; there is nothing to open"
        )


class ConsentError(ClientError):
    """Something is not what this hospital's owner has allowed."""


class HomeMissing(ConsentError):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(f"{folder} is no hospital's home: run `consilium hospital init`, or pass --home")


class HomeTaken(ConsentError):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(f"{folder} is a hospital's home already: edit its node.toml, or pass another --home")


class PolicyInvalid(ConsentError):
    pass


class NotAllowed(ConsentError):
    """`objections`: in words, one for each rule of the policy that the task does not keep."""

    def __init__(self, task: str, objections: Sequence[str]) -> None:
        self.task, self.objections = task, tuple(objections)
        super().__init__(
            f"this hospital's policy does not allow the task {task!r}: {'; '.join(objections)}. If it should, change"
            " policy.toml"
        )


class NotApproved(ConsentError):
    def __init__(self, task: int) -> None:
        self.task = task
        super().__init__(
            f"task {task} is not approved here: run `consilium hospital join {task}`, which shows it first"
        )


class ApprovalInvalid(ConsentError):
    pass


class ApprovalStale(ConsentError):
    def __init__(self, task: int, why: str) -> None:
        self.task = task
        super().__init__(
            f"what was approved as task {task} {why}: nothing was started. See what would run"
            f" (`consilium hospital show {task}`), and approve it anew (`consilium hospital join {task}`)"
        )


class AlreadyRunning(ConsentError):
    def __init__(self, task: int) -> None:
        self.task = task
        super().__init__(f"a node of task {task} runs in this home already: end it first, or leave it to its work")


class NotConfirmed(ConsentError):
    def __init__(self, task: int) -> None:
        self.task = task
        super().__init__(f"nothing was done about task {task}: answer y, or pass --yes where nobody can answer")


class WhichTask(ConsentError):
    def __init__(self, approved: Sequence[int]) -> None:
        self.approved = tuple(approved)
        shown = ", ".join(map(str, approved)) or "none"
        super().__init__(f"name a task: approved here are {shown}; `consilium hospital tasks` lists all")


class CertificateInvalid(ConsentError):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path} is no PEM certificate that can be read: ask the aggregator for its ca.crt")


class TransportKeyInvalid(NodeError):
    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is no ECDSA P-384 key in OpenSSH format; make one with `ssh-keygen -t ecdsa -b 384`")


class AuditError(ClientError):
    """An audit log, or an export of one, does not hold."""


class AuditUnwritable(AuditError):
    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(
            f"cannot write to the audit log {path}: {why}; nothing leaves this node that is not written down there, so"
            " make room or put the file back, and start the node again"
        )


class AuditUnreadable(AuditError):
    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"cannot read {path}: {why}; pass the path of an audit log's export")


class AuditMalformed(AuditError):
    """`line` counts from 1."""

    def __init__(self, line: int, why: str) -> None:
        self.line, self.why = line, why
        super().__init__(
            f"line {line} of the audit log: {why}; keep the file as it is for who audits it, and make an export with"
            " `consilium hospital export-audit`"
        )


class AuditBroken(AuditError):
    """`line` counts from 1."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(
            f"line {line} of the audit log does not follow the line before it: one of them was changed, moved, put in"
            " or left out since; ask the hospital why"
        )


class AuditForged(AuditError):
    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"this is not what the hospital signed: {why}; ask it for another export")


class AuditRewritten(AuditError):
    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"this export does not go on from the older one: {why}; ask the hospital why")


class AuditIncomplete(AuditError):
    """`missing`: what is on chain and not in the log, in words."""

    def __init__(self, hospital: str, missing: Sequence[str]) -> None:
        self.hospital, self.missing = hospital, tuple(missing)
        super().__init__(
            f"{len(missing)} of what the chain holds of {hospital} the log does not: {'; '.join(missing)}; ask the"
            " hospital what else sends in its name"
        )
