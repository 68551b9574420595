"""Errors of the operators' room."""

from __future__ import annotations

from typing import ClassVar

from consilium_core.faults import FaultError


class OperatorError(FaultError):
    """A task cannot be proposed or changed as asked, or a model cannot be written or read."""

    MESSAGES: ClassVar = {
        "AlreadyProposed": (
            "nothing was sent, for this very file is proposed already, by this account, and not over: task {tasks};"
            " `consilium operator watch {last}` follows it, and --again proposes it once more, for another pool"
        ),
        "AggregatorMissing": (
            "a task is proposed with its aggregator's account: pass --aggregator 0x…, which has to hold the"
            " aggregator's bond, or --dry-run to look only"
        ),
        "PrivacyMissing": (
            "nothing was sent: the task file has no [privacy], and without it nothing bounds what sums say of a row;"
            " add [privacy] with epsilon = 8 and max_grad_norm = 1.0 (docs/operator.md has training that learns with"
            " it), or pass --not-private"
        ),
        "BondOutweighed": (
            "nothing was sent, for with so much in the pool the aggregator would lose less than two rounds' fees by"
            " letting a round go by: add at most {most:,} tokens to task {task}, or propose another one with a"
            " larger aggregator_bond"
        ),
        "ProposalNotConfirmed": "nothing was sent: answer y, or pass --yes where nobody can answer",
        "NotVerified": (
            "nothing was written, for checks of task {task} fail ({failed}); `consilium verify {task} {first}` says"
            " with which values, another mirror of the artifacts may help, and --unverified writes the model all the"
            " same"
        ),
        "OutputTaken": "{path} is there already: move it away, or pass another --output",
        "ModelFolderInvalid": "{path}: {why}; write the model anew by `consilium operator download-model`",
    }


class RowsInvalid(FaultError):
    """A request for predictions does not hold rows of the task. `status`: of the HTTP answer."""

    MESSAGES: ClassVar = {
        "RowsInvalid": "{why}",
        "BodyTooLarge": "the request has more than {at_most:,} bytes: send fewer rows at once",
        "BodyMalformed": "the request cannot be read: {why}",
        "MediaTypeWrong": "rows are sent as JSON: say Content-Type: application/json",
        "TooManyAtOnce": "there are more than {at_most:,} rows: send them in parts",
    }

    @property
    def status(self) -> int:
        return {"BodyMalformed": 400, "BodyTooLarge": 413, "MediaTypeWrong": 415}.get(self.name, 422)
