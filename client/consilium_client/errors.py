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
├── PrivacyError                a task's or this hospital's own bound on what a row may cost
│   ├── PrivacyMissing          a task without a bound, at a hospital that has one
│   ├── EpsilonUnreachable      no amount of noise keeps the task's rounds within its epsilon
│   ├── BudgetExceeded          one more round would cost rows more than is allowed
│   ├── ChargeChanged           a round was charged before, with other noise
│   ├── RoundPassed             a round was charged before, and a later one since
│   └── EpsilonLedgerInvalid    the file of what was spent cannot be read
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


class PrivacyError(ClientError):
    """A task's, or this hospital's own, bound on what a row may cost."""


class PrivacyMissing(PrivacyError):
    def __init__(self, task: int, allowed: float) -> None:
        self.task, self.allowed = task, allowed
        super().__init__(
            f"task {task} is not private, and this hospital allows its rows epsilon {allowed:g} at most:"
            " join another task, or remove max_epsilon from this node's configuration"
        )


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
