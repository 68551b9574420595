"""Errors of the client room.

ClientError
├── DataError                   a table is not what the task's schema asks for
│   ├── DataFileMissing         no readable file at the path
│   ├── DataFileMalformed       not UTF-8, not CSV, a line of another width, or no header line
│   ├── DataFileEmpty           no line below the header
│   ├── ColumnsWrong            columns missing, unexpected or named twice
│   ├── ValueNotNumeric         a cell holds something that is not a number
│   ├── ValueNotFinite          a cell says nan or inf, which is not the same as being empty
│   ├── LabelOutOfSchema        a label cell holds neither 0 nor 1
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
│   └── TransportKeyInvalid     the Flower node key is missing or of another kind
├── AuditError
│   ├── AuditUnwritable         what is to leave cannot be written down first, so it does not leave
│   ├── AuditUnreadable         no readable log or export at the path
│   ├── AuditMalformed          a line is no entry, or a file no export
│   ├── AuditBroken             a line does not follow the one before it
│   ├── AuditForged             an export is not what its hospital signed
│   ├── AuditRewritten          an export does not go on from an older one
│   └── AuditIncomplete         the chain holds what the log does not
├── StatisticsOutOfRange        a hospital brought round 0 what cannot be counted
├── StatisticsInvalid           the summed statistics of round 0 are no numbers
└── ModelError
    ├── UpdateNotFinite         parameters, or what a model makes of them, hold nan or inf
    └── ShapeMismatch           an array has another shape than the task gives it

No message repeats a cell of anybody's table: messages end up in logs, and logs travel. They say line and column.
For the same reason parsers here never chain the error of `float`, which quotes what it could not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class ClientError(Exception):
    """Root of this room's errors."""


class DataError(ClientError):
    """A table is not what the task's schema asks for."""


class DataFileMissing(DataError):
    def __init__(self, path: Path, why: str = "there is no such file") -> None:
        self.path, self.why = path, why
        super().__init__(f"cannot read {path}: {why}; pass the path of a CSV file that this user may read")


class DataFileMalformed(DataError):
    """`line` counts from 1, the header being line 1; None where the fault has no line."""

    def __init__(self, path: Path, why: str, line: int | None = None) -> None:
        self.path, self.why, self.line = path, why, line
        where = f"{path}, line {line}" if line is not None else str(path)
        super().__init__(f"{where}: {why}; save the table as comma-separated UTF-8 with one header line")


class DataFileEmpty(DataError):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path} holds no rows; write a header line and at least one row below it")


class ColumnsWrong(DataError):
    def __init__(self, path: Path, missing: Sequence[str], unexpected: Sequence[str], duplicate: Sequence[str]) -> None:
        self.path = path
        self.missing, self.unexpected, self.duplicate = tuple(missing), tuple(unexpected), tuple(duplicate)
        faults = (("missing", self.missing), ("unexpected", self.unexpected), ("named twice", self.duplicate))
        shown = "; ".join(
            f"{fault}: {', '.join(name or '(no name)' for name in names)}" for fault, names in faults if names
        )
        super().__init__(f"{path}: the columns are not the task's ({shown}); add, remove or rename these columns")


class ValueNotNumeric(DataError):
    def __init__(self, path: Path, row: int, column: str) -> None:
        self.path, self.row, self.column = path, row, column
        super().__init__(
            f"{path}, line {row}, column {column}: the cell is not a number;"
            " write a number with a decimal point, or leave the cell empty if the value is missing"
        )


class ValueNotFinite(DataError):
    def __init__(self, path: Path, row: int, column: str) -> None:
        self.path, self.row, self.column = path, row, column
        super().__init__(
            f"{path}, line {row}, column {column}: the cell is not a finite number;"
            " leave the cell empty (or write ?) if the value is missing"
        )


class LabelOutOfSchema(DataError):
    def __init__(self, path: Path, row: int, column: str) -> None:
        self.path, self.row, self.column = path, row, column
        super().__init__(
            f"{path}, line {row}: the label {column} is neither 0 nor 1; write 0 or 1, or remove rows without a label"
        )


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
            f"{rows} rows are more than the {at_most} that one hospital may bring;"
            " draw a sample, or join as several hospitals"
        )


class StatisticsOutOfRange(ClientError):
    def __init__(self, task: int) -> None:
        self.task = task
        super().__init__(f"the statistics of task {task} hold a value out of range: leave the task, it has no model")


class StatisticsInvalid(ClientError):
    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(f"value {index} of the summed statistics is not finite; check the round 0 that was published")


class ModelError(ClientError):
    """Parameters or arrays do not fit the task's model."""


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
