"""Errors of the operators' room."""

from __future__ import annotations

from typing import ClassVar

from consilium_core.faults import FaultError


class OperatorError(FaultError):
    """A task cannot be proposed or changed, or a model cannot be written or read."""

    MESSAGES: ClassVar = {
        "AlreadyProposed": (
            "nothing was sent: this account has an open task with the same file: task {tasks}."
            " `consilium operator watch {last}` follows it; --again proposes the file once more, with another pool"
        ),
        "AggregatorMissing": (
            "a proposal names the aggregator's account: pass --aggregator 0x… (the account must have the bond staked),"
            " or --dry-run to send nothing"
        ),
        "PrivacyMissing": (
            "nothing was sent: the task file has no [privacy], so nothing bounds what sums reveal about a row. Add"
            " [privacy] with epsilon = 8 and max_grad_norm = 1.0 (docs/operator.md has a training section that learns"
            " with it), or pass --not-private"
        ),
        "TermsUnfair": "these terms cannot be proposed: {why}",
        "BondOutweighed": (
            "nothing was sent: with such a pool, the aggregator's slash for a missed round would be less than two"
            " rounds' fees. Add at most {most:,} tokens to task {task}, or propose another task with a larger"
            " aggregator_bond"
        ),
        "ProposalNotConfirmed": "nothing was sent: answer y, or pass --yes if nobody can answer",
        "NotVerified": (
            "nothing was written: checks of task {task} fail ({failed}). `consilium verify {task} {first}` shows the"
            " values. Try another mirror of the artifacts, or pass --unverified to write the model anyway"
        ),
        "TaskNotEnded": (
            "nothing was sent: task {task} has not ended: `consilium operator watch {task}` tells when; then run this"
            " again"
        ),
        "NotForSale": (
            "nothing was sent: the file of task {task} has no section [sale], which its hospitals would have read"
            " before they joined: its model cannot be sold. Name another task"
        ),
        "NotAnArena": (
            "task {task} is no arena: its file sets no rank_decay_bps. `consilium operator watch {task}` follows it"
        ),
        "SummaryMissing": "the file of task {task} has no [summary], so round 0 counted nothing: name another task",
        "SummaryNotVerified": (
            "nothing is shown: checks of round 0 of task {task} fail ({failed}). `consilium verify {task} 0` shows the"
            " values. Try another mirror of the artifacts"
        ),
        "TrackingFailed": (
            "the tracking server {location} did not take the task's points ({why}): check that it runs, and MLflow's"
            " variables for its user. Then run the command again: it continues, and doubles nothing"
        ),
        "ColumnUnknown": "{path} has no column {column!r}: choose one of {known}",
        "LabelNotClasses": (
            "the column {column} of {path} has {found} different values, and a task learns 2 to {at_most} classes:"
            " choose another label, or write classes into the file"
        ),
        "AnswersNotYesOrNo": (
            "the column {column} of {path} has other values than 1 for yes and 0 for no: write these, or choose another"
            " column"
        ),
        "TimesNotNumbers": (
            "the column {column} of {path} has other values than numbers from 0 on, and a time needs them: compute the"
            " time from its dates, or choose another column"
        ),
        "NothingToLearnFrom": "no column of {path} is left to learn from: leave out fewer, or bring measurements",
        "WeightsTooLong": "{path} has {size:,} bytes, and a file of weights has 1 to {most:,}: bring another",
        "ForetellsTokens": (
            "{name} is a language model: it foretells tokens, and gives rows no class. `consilium operator evaluate`"
            " tells how well it does, and `consilium operator export-onnx` gives other programs its logits"
        ),
        "MarksPixels": (
            "{name} marks pixels, and neither a table nor JSON has masks. `consilium predict --output FOLDER` writes"
            " them, and `consilium operator export-onnx` gives other programs each pixel's probabilities"
        ),
        "ProgramFolderInvalid": (
            "{path} lacks {missing}: pass a file of weights, or the folder that `consilium.export` wrote"
        ),
        "OutputTaken": "{path} exists already: move it away, or pass another --output",
        "TooManySites": (
            "the column of sites has {sites:,} different values, but at most {at_most} are shown; pass another"
            " --site-column, such as the hospital's name"
        ),
        "SiteReportRefused": (
            "{path}: {why}; pass the file that its node wrote by `evaluate --share`, for this task and this model"
        ),
        "NothingToEvaluate": (
            "there are no figures: pass labelled rows (--data), or reports of the task's nodes (--sites), or both"
        ),
        "LocalTensorsMissing": (
            "the model leaves out {names}, which each hospital has for itself: pass yours with --local FILE, from"
            " `memory` in its home"
        ),
        "OnnxNotInstalled": "this Python lacks {packages}: pip install 'consilium[onnx]'",
        "OnnxImpossible": "no model.onnx was written: {why}; use the model by `consilium predict`",
        "OnnxDiffers": (
            "no model.onnx was written: it gives a probability that differs by {difference:.1e} from PyTorch's, and at"
            " most {most:.0e} is allowed; use the model by `consilium predict`"
        ),
        "Int8Worse": (
            "no model-int8.onnx was written: its {metric} on {rows:,} rows is {after:.4f}, and {before:.4f} without"
            " quantising; use model.onnx"
        ),
        "ModelFolderInvalid": "{path}: {why}; write the model again with `consilium operator download-model`",
    }


class RowsInvalid(FaultError):
    """A request for predictions is not valid. `status`: the HTTP answer's."""

    MESSAGES: ClassVar = {
        "RowsInvalid": "{why}",
        "BodyTooLarge": "the request has more than {at_most:,} bytes: send fewer rows at once",
        "BodyMalformed": "the request cannot be read: {why}",
        "MediaTypeWrong": "rows must be JSON: send Content-Type: application/json",
        "TooManyAtOnce": "the request has more than {at_most:,} rows: send them in several requests",
    }

    @property
    def status(self) -> int:
        return {"BodyMalformed": 400, "BodyTooLarge": 413, "MediaTypeWrong": 415}.get(self.name, 422)
