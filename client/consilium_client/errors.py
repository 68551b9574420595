"""Errors of the client room: one class for each decision of a caller, one fault for each message.

ClientError                 a fault that no caller tells apart: exact sums must not leave, a file is malformed
├── OwnersRefusal           the node's owner has not allowed this: a later start is refused, too
├── DataError               examples, or their mapping, do not fit the task's schema
│   ├── CellError           one cell of a table
│   │   └── RangeError      a value lies outside the range of a finished model
│   ├── FolderError         the layout of a folder of examples
│   └── ExampleError        one text or image
├── NodeError               a node cannot go on with a round
│   ├── BallotError         a ballot is gone
│   ├── FrameError          bytes between relay and node are not a frame
│   ├── MismatchError       the published result does not follow from the record
│   └── TransportKeyError   the Flower node key cannot be used
├── ConsentError            a command lacks a confirmation, tokens, a stake or a registration of its user
│   └── HomeError           a home is missing, taken, or of other contracts
├── AuditError              an audit log, or an export of one, does not hold
├── PrivacyError            a bound on a row's privacy cost, or the record of the costs
│   └── BudgetError         the bound would be exceeded; also an OwnersRefusal
└── ModelError              parameters or arrays do not fit the task's model
    └── FingerprintError    bytes are not a fingerprint of this batch

No message repeats a cell, a text or a pixel: messages end up in logs, and logs travel. They name a line (of Parquet: a
row) and a column, counted from 1, or a file. So parsers here never chain the error of `float`, which quotes its input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from consilium_core.faults import FaultError
from consilium_core.units import ether, tokens

from consilium_client.data_faults import CELLS, DATA, FILES, FOLDERS, QUERIES
from consilium_client.image_faults import IMAGE_FAULTS

NAMES_SHOWN = 10  # of columns, in one message
FAILED, REFUSED = 1, 3  # exit codes of commands


def _each(start: str, faults: Mapping[str, str]) -> dict[str, str]:
    """Messages that begin alike."""
    return {name: start + message for name, message in faults.items()}


class ClientError(FaultError):
    """Root of this room's errors, and the class of those that no caller tells apart.

    `exit_code`: of a command that it ends.
    """

    exit_code: ClassVar[int] = FAILED
    MESSAGES: ClassVar[Mapping[str, str]] = {
        "StartUnusable": "the task starts from the model of task {task} of {contract} on chain {chain_id}, {why}",
        "StatisticsOverlap": "task {task} already has exact statistics of {shared:,} of these rows, and {apart}. The"
        " difference between the two sums would show the rows that differ. Join tasks with"
        ' statistics = "schema" and without exact counts, or bring exactly the same rows again',
        "StatisticsUncomparable": "task {task} already has exact statistics under another schema, so the rows cannot be"
        ' compared. Join tasks with statistics = "schema". If these rows are of other patients, make another home'
        " for them",
        "StatisticsUnknown": "this account gave exact statistics in task {task}, but {path} does not list their rows;"
        ' restore the file and its key from the latest backup, or join tasks with statistics = "schema"',
        "StatisticsKeyLost": "the key file {key} is missing, and {path} cannot be read without it; restore the key file"
        " from a backup",
        "StatisticsLedgerInvalid": "{path}, line {line}: this is not a record of exact statistics; restore the file"
        " from the latest backup. Without it, this node does not know which rows were counted before",
        "StatisticsOutOfRange": "the statistics of task {task} contain a value out of range, so the task has no model;"
        " leave the task",
        "StatisticsInvalid": "value {index} of the summed statistics is not finite; check the published round 0",
        "NothingHeldOut": "no rows of this home were kept out of the training of task {task}, so none can say how good"
        " its model is; set `held_out` in node.toml before the first round of the next task",
        "SharingTooEarly": "no report was signed: task {task} has not ended, so its model may still change; share after"
        " its last round",
        "TooFewToShare": "no report was signed: {why}. Fewer would say the answers of some; share nothing of this task",
        "TrialNotLocal": "trial_seed makes updates predictable, and chain {chain_id} is no local one; remove it from"
        " node.toml",
        "DisclosureMalformed": "{path}: {why}; pass a file that `consilium voter disclose-evaluation` wrote, or ask the"
        " voter for another one",
    }


class OwnersRefusal(ClientError):
    """The node's owner has not allowed this. A later start is refused, too, so no supervisor should try one."""

    exit_code = REFUSED
    MESSAGES: ClassVar = {
        "PolicyInvalid": "{why}",
        "NotAllowed": "this home's policy does not allow the task {task!r}: {objections}. To allow it, change"
        " policy.toml",
        "SharingNotAllowed": "no report was signed: {why}. To share coarse figures of this node's rows, change"
        " policy.toml (docs/privacy.md says what they tell)",
        "NotApproved": "task {task} is not approved in this home; run `consilium hospital join {task}`, which shows it"
        " first",
        "ApprovalInvalid": "{why}",
        "ApprovalStale": "the approval of task {task} does not fit: {why}. Nothing was started. Look at the task"
        " (`consilium hospital show {task}`), and approve it again (`consilium hospital join {task}`)",
        "SecondSignatureMissing": "the policy asks for the signature of {by} on task {task}; run `consilium hospital"
        " approve {task} --output FOLDER`, send the folder, and bring the signed file back by `--signed FILE`",
        "SecondSignatureNotNeeded": "the policy asks for no second signature on task {task}; join it, or write accounts"
        " under [approval] in policy.toml",
        "SecondSignatureMalformed": "the signed approval is of no use: {why}; ask its signer for the file of `consilium"
        " hospital sign-approval`",
        "SecondSignatureOfAnother": "the signed approval is of another `{field}`: {found}, and here it is {here}. Run"
        " `consilium hospital approve {task} --output FOLDER`, and let it be signed anew",
        "SecondSignatureFromFuture": "the signed approval is of {date}, which is not yet; check both machines' clocks",
        "SecondSignatureByStranger": "{signer} signed the approval, and [approval] in policy.toml does not name this"
        " account; ask one of its accounts",
        "SecondSignatureForged": "the approval's signature is not by {signer}, neither by key nor as a contract; let it"
        " be signed anew",
    }


class DataError(ClientError):
    """Examples, or their mapping, do not fit the task's schema. Lines count from 1, the header being line 1."""

    MESSAGES = FILES | DATA | QUERIES


class CellError(DataError):
    """`at`: where the cell is, in words (`Source.where`); `row` and `column`: the same for programs."""

    MESSAGES = _each(
        "{path}, {at}: ",
        CELLS,
    )


class RangeError(CellError):
    """A value lies outside the range of a finished model. `bounds`: the range by names, for programs."""

    MESSAGES = _each(
        "{path}, {at}: ",
        {
            "ValueOutOfRange": "the value is {side} the model's range, {low:.12g} to {high:.12g}; check the column and"
            " its unit (a mapping converts units by scale and offset). To count such values as the nearest bound, pass"
            " --clamp",
            "CodeOutOfRange": "the code is not one of the model's ({codes}); give it one of these by a mapping's codes,"
            " or leave the cell empty. To count such codes as missing, pass --clamp",
        },
    )

    @property
    def bounds(self) -> dict[str, Any]:
        return {name: self.values[name] for name in ("low", "high", "codes") if name in self.values}


class FolderError(DataError):
    """`file`: the file or folder at fault, with its line in labels.csv if that names it."""

    MESSAGES = _each(
        "{file}: ",
        FOLDERS,
    )


class ExampleError(DataError):
    """One text or image is at fault. `at`: its file's name within a folder, or its row in a file."""

    MESSAGES = _each(
        "{path}, {at}: ",
        {
            "TextEmpty": "the text is empty; remove the row or the file, or export it with its text",
            "TextTooLong": "the text has more than 131,072 characters, far more than a model reads; keep the most"
            " important part, and check that this is only one text",
            "TextIsNumber": "the cell is a number, not a text; check the column, and export texts as text",
            **IMAGE_FAULTS,
        },
    )


class NodeError(ClientError):
    """A node cannot go on with a round."""

    MESSAGES: ClassVar = {
        "NotAssigned": "this hospital is in no cohort of round {round}: the block that assigned cohorts was undone, or"
        " the chain node lags behind; wait: this node tries again with the next block",
        "NotInTask": "{account} joined task {task}, but the task does not list it: the block was undone, or the chain"
        " node lags behind; start this node again",
        "PendingUpdateLost": "the update committed in round {round} is no longer on this disk, or was replaced; the"
        " round goes on without this hospital",
        "BaseStale": "the update of round {round} was trained from base {trained}, but the record now gives {now}: a"
        " reorganisation changed it; the round goes on without this hospital",
        "MemoryDamaged": "{path} has {bytes} bytes, not {expected}; restore it from a backup, or delete it: then this"
        " hospital goes on without what it knew of its earlier update",
        "EncryptionKeyLost": "{path} is not the encryption key that this hospital announced when it joined; restore the"
        " file from a backup. Without it, this hospital cannot help to unmask a sum",
        "MaskingChanged": "the chain names other hospitals in round {round} than those that this node {what} for"
        " before. Doing it for both could reveal its update, so it does nothing more in this round",
        "NotASurvivor": "this hospital is not among the survivors of round {round}, so it has no part in their sum",
        "HeldOutLost": "{path} does not contain the secret of this voter's commitment to its rows; restore the original"
        " file. Without it, this voter cannot show any evaluation of the task",
        "NothingEvaluated": "this voter evaluated no model for its ballot of round {round}: the round had statistics"
        " only, or the ballot says that the published result does not match; choose another round",
    }


class BallotError(NodeError):
    MESSAGES: ClassVar = {
        "BallotLost": "the ballot of round {round} is not on this disk, so it cannot be revealed or disclosed; check"
        " the round and the home"
    }


class FrameError(NodeError):
    MESSAGES: ClassVar = {"FrameMalformed": "{why}"}


class MismatchError(NodeError):
    """The voter's node votes that the round does not match. Commitments are hexadecimal digits."""

    MESSAGES: ClassVar = {
        "NegatedDeltaMismatched": "the decoys of round {round} take back {published}, but the record gives {expected};"
        " vote that this round does not match",
        "CheatersMismatched": "the aggregator names hospitals {named} for cohorts without a sum in round {round}, but"
        " the evidence gives {found}; vote that this round does not match",
    }


class TransportKeyError(NodeError):
    MESSAGES: ClassVar = {"TransportKeyInvalid": "the node key {path} cannot be used: {why}"}


class ConsentError(ClientError):
    """A command lacks a confirmation, tokens, a stake or a registration of its user."""

    MESSAGES: ClassVar = {
        "AlreadyRunning": "{node} already runs in this home; stop it first, or leave it running",
        "NotConfirmed": "nothing was done about {about}; answer y, or pass --yes in a script",
        "SuperLinkUnknown": "this home has no invite to task {task}; pass --invite, or both --superlink and"
        " --ca-certificate",
        "WhichTask": "name a task (approved here: {approved}); `consilium hospital tasks` lists all tasks",
        "NotRegistered": "{account} {why}; run `consilium voter register`",
        "Unfunded": "nothing was sent, because {account} lacks {missing}; send it the missing amount, and try again",
        "StakeTooSmall": "task {task} locks {bond} tokens of stake, but only {free} are free; add stake with"
        " `consilium voter register --stake`, or wait until another task ends and frees its bond",
        "TooManyTasks": "policy.toml allows {at_most} tasks at once (`max_tasks`), and task {task} would be one more;"
        " wait until a task ends, or raise `max_tasks`",
        "CertificateInvalid": "{path} is not a readable PEM certificate; ask the aggregator for its ca.crt",
    }


class HomeError(ConsentError):
    MESSAGES: ClassVar = {
        "HomeMissing": "{folder} is not a {whose}'s home; run `consilium {whose} init`, or pass --home",
        "HomeTaken": "{folder} is already a home; edit its node.toml, or pass another --home",
        "SameContracts": "{other} is, or was, a home for the contracts of this address book. Two homes of one account"
        " would commit to two different updates or ballots in a round; use that home, or pass the address book of"
        " other contracts",
    }


class AuditError(ClientError):
    """An audit log, or an export of one, does not hold. Lines count from 1."""

    MESSAGES: ClassVar = {
        "AuditUnwritable": "cannot write to the audit log {path}: {why}. This node sends nothing that the log does not"
        " record; free disk space or restore the file, and start the node again",
        "AuditUnreadable": "cannot read {path}: {why}; pass the path of an exported audit log",
        "AuditMalformed": "line {line} of the audit log: {why}; keep the file unchanged for the auditor, and make an"
        " export with `consilium hospital export-audit`",
        "AuditBroken": "line {line} of the audit log does not follow the line before it: a line was changed, moved,"
        " added or removed; ask the hospital why",
        "AuditForged": "the hospital did not sign this file: {why}; ask it for another export",
        "AuditRewritten": "this export does not continue the older one: {why}; ask the hospital why",
        "AuditIncomplete": "the chain has {count} transactions of {hospital} that the log lacks: {missing}; ask the"
        " hospital which other program sends in its name",
    }


class PrivacyError(ClientError):
    """A round cannot be charged to the privacy accountant."""

    MESSAGES: ClassVar = {
        "ChargeChanged": "round {round} of task {task} was charged as {charged}, but would now cost {now}: the rows or"
        " the task file changed; sit this round out",
        "RoundPassed": "round {round} of task {task} was charged, and a later round too, so its update may have left. A"
        " second update is not paid for; sit this round out",
        "ChargesUnknown": "the privacy accountant lacks rounds {rounds} of task {task_key}, to which this account"
        " committed. Its file may be an older copy. The task file, which gives their cost, cannot be read ({why}); add"
        " a mirror that has it to `artifacts` in node.toml",
        "EpsilonLedgerInvalid": "{path}, line {line}: this is not a charge; restore the file from a backup that has all"
        " private rounds. Without it, the privacy cost of the rows is unknown",
    }


class BudgetError(PrivacyError, OwnersRefusal):
    """Epsilons are at `delta`. `spent` and `would_be`: without and with the round in question."""

    MESSAGES: ClassVar = {
        "EpsilonUnreachable": "no noise keeps {steps} training steps within epsilon {epsilon:g} at delta {delta:g}; ask"
        " the operator to raise epsilon or delta",
        "BudgetExceeded": "{whose} allows epsilon {allowed:g} at delta {delta:g}: {spent:.4g} is spent, and this would"
        " make it {would_be:.4g}; sit out",
    }


class ModelError(ClientError):
    """Parameters or arrays do not fit the task's model, or it cannot run here. `what` names the array."""

    MESSAGES: ClassVar = {
        "ModelNotInstalled": "this installation cannot run {model}: the package {package} is missing; install it as"
        " docs/models.md says",
        "DeviceMissing": 'node.toml says device = "{device}", but torch finds no such GPU; check the driver'
        ' (nvidia-smi) and the installation of torch, or write device = "cpu"',
        "TorchNeeded": "{why} needs torch, and this node trains without it; install torch (docs/hospital.md), and"
        ' remove device = "numpy" from node.toml',
        "WeightsUnusable": "the file of weights is no start for this task: {why}; name a file of the same model",
        "EncoderAltered": "{path} is not the original file of {encoder}: its SHA-256 differs; install the package"
        " again",
        "UpdateNotFinite": "{bad} of {of} values of the {what} are not finite; if this node trained them, lower the"
        " task's learning rate or epochs. Otherwise refuse the model",
        "ShapeMismatch": "the {what} have shape {found}, but the task needs {expected}; check that model, data and"
        " task file belong together",
    }


class FingerprintError(ModelError):
    MESSAGES: ClassVar = {
        "FingerprintMalformed": "this is not a fingerprint of this batch: {why}; it was not made from these rows and"
        " models"
    }


def unfunded(account: str, missing_tokens: int, missing_wei: int) -> ConsentError:
    """The error about an account that lacks tokens, in units of 10^-18, or wei for gas, or both."""
    missing = [f"{tokens(missing_tokens)} tokens"] * (missing_tokens > 0)
    missing += [f"{ether(missing_wei)} ether for gas"] * (missing_wei > 0)
    return ConsentError("Unfunded", account=account, missing=" and ".join(missing))


def in_file(column: str, called: str | None) -> str:
    """The file's name for a column, where the task has another."""
    return f" ({called} in the file)" if called not in (None, "", column) else ""


def shortened(names: Sequence[str]) -> str:
    """Names in a row, the first few of many."""
    shown = ", ".join(name or "(no name)" for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
