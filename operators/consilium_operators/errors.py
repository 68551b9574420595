"""Errors of the operator's commands.

OperatorError
├── AlreadyProposed      an open task of this operator's is by the very same file
├── AggregatorMissing    a proposal names no aggregator
├── PrivacyMissing       the task file has no [privacy], and --not-private was not passed
├── BondOutweighed       a pool would be too large for the aggregator's bond
├── ProposalNotConfirmed nobody said yes
├── NotVerified          a round's checks fail, so that no model is written
├── OutputTaken          something is where the model would be written
├── ModelFolderInvalid   a model folder is not what its model.json says
└── RowsInvalid          what a prediction is asked for is not rows: carries its HTTP status
    ├── BodyTooLarge
    ├── BodyMalformed
    ├── MediaTypeWrong
    └── TooManyAtOnce
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


class OperatorError(Exception):
    """Root of these."""


class AlreadyProposed(OperatorError):
    def __init__(self, tasks: Sequence[int]) -> None:
        self.tasks = tuple(tasks)
        shown = ", ".join(map(str, tasks))
        super().__init__(
            f"nothing was sent, for this very file is proposed already, by this account, and not over: task {shown};"
            f" `consilium operator watch {tasks[-1]}` follows it, and --again proposes it once more, for another pool"
        )


class AggregatorMissing(OperatorError):
    def __init__(self) -> None:
        super().__init__(
            "a task is proposed with its aggregator's account: pass --aggregator 0x…, which has to hold the"
            " aggregator's bond, or --dry-run to look only"
        )


class PrivacyMissing(OperatorError):
    def __init__(self) -> None:
        super().__init__(
            "nothing was sent: the task file has no [privacy], and without it nothing bounds what sums say of a row;"
            " add [privacy] with epsilon = 8 and max_grad_norm = 1.0 (docs/operator.md has training that learns with"
            " it), or pass --not-private"
        )


class BondOutweighed(OperatorError):
    """`most`: what may be added, in whole tokens."""

    def __init__(self, task: int, most: int) -> None:
        self.task, self.most = task, most
        super().__init__(
            "nothing was sent, for with so much in the pool the aggregator would lose less than two rounds' fees by"
            f" letting a round go by: add at most {most:,} tokens to task {task}, or propose another one with a"
            " larger aggregator_bond"
        )


class ProposalNotConfirmed(OperatorError):
    def __init__(self) -> None:
        super().__init__("nothing was sent: answer y, or pass --yes where nobody can answer")


class NotVerified(OperatorError):
    """`failed`: by round, the names of the checks that fail."""

    def __init__(self, task: int, failed: Mapping[int, Sequence[str]]) -> None:
        self.task, self.failed = task, {round_: tuple(names) for round_, names in failed.items()}
        told = "; ".join(f"round {round_}: {', '.join(names)}" for round_, names in self.failed.items())
        first = min(self.failed)
        super().__init__(
            f"nothing was written, for checks of task {task} fail ({told}); `consilium verify {task} {first}` says with"
            " which values, another mirror of the artifacts may help, and --unverified writes the model all the same"
        )


class OutputTaken(OperatorError):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path} is there already: move it away, or pass another --output")


class ModelFolderInvalid(OperatorError):
    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}; write the model anew by `consilium operator download-model`")


class RowsInvalid(OperatorError):
    """What is asked for is not rows."""

    status = 422


class BodyTooLarge(RowsInvalid):
    status = 413

    def __init__(self, at_most: int) -> None:
        super().__init__(f"the request has more than {at_most:,} bytes: send fewer rows at once")


class BodyMalformed(RowsInvalid):
    status = 400


class MediaTypeWrong(RowsInvalid):
    status = 415

    def __init__(self) -> None:
        super().__init__("rows are sent as JSON: say Content-Type: application/json")


class TooManyAtOnce(RowsInvalid):
    def __init__(self, at_most: int) -> None:
        super().__init__(f"there are more than {at_most:,} rows: send them in parts")
