"""Errors of the client room: one class for each decision of a caller, one fault for each message.

ClientError                 a fault that no caller tells apart: exact sums must not leave, a file is malformed
├── OwnersRefusal           the node's owner has not allowed this: a later start is refused, too
├── DataError               examples, or their mapping, do not fit the task's schema
│   ├── CellError           one cell of a table
│   ├── FolderError         the layout of a folder of examples
│   └── ExampleError        one text or image
├── NodeError               a node cannot go on with a round
│   ├── BallotError         a ballot is gone
│   ├── FrameError          bytes between relay and node are not a frame
│   ├── MismatchError       the published result does not follow from the record
│   └── TransportKeyError   the Flower node key cannot be used
├── ConsentError            a command lacks what it needs of its user
│   └── HomeError           a home is missing, taken, or of other contracts
├── AuditError              an audit log, or an export of one, does not hold
├── PrivacyError            a bound on what a row may cost, or the record of the costs
│   └── BudgetError         the bound would be exceeded; also an OwnersRefusal
└── ModelError              parameters or arrays do not fit the task's model
    └── FingerprintError    bytes are not a fingerprint of this batch

No message repeats a cell of a table, a text or a pixel: messages end up in logs, and logs travel. They say line (of a
Parquet file: row) and column, both counted from 1, or a file's name. For the same reason parsers here never chain the
error of `float`, which quotes what it could not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from consilium_core.faults import FaultError
from consilium_core.units import ether, tokens

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
        "StatisticsOverlap": "exact statistics were given in {task} for {shared:,} of these rows, and {apart}: the"
        ' difference of both sums would show the rows that differ. Join tasks with statistics = "schema", or bring the'
        " same rows again, as they were",
        "StatisticsUncomparable": "exact statistics were given in {task} under another schema, so that nothing shows"
        ' whether these are other rows. Join tasks with statistics = "schema"; if the rows are other patients\', make a'
        " home for them",
        "StatisticsUnknown": "this account gave exact statistics in {task}, and {path} does not have their rows:"
        ' restore the file and its key from the latest backup, or join tasks with statistics = "schema"',
        "StatisticsKeyLost": "{key} is gone, without which nothing in {path} can be compared: restore it from a backup",
        "StatisticsLedgerInvalid": "{path}, line {line}, is no set of rows: restore the file from the latest backup;"
        " without it nothing shows for which rows exact statistics were given",
        "StatisticsOutOfRange": "the statistics of task {task} hold a value out of range: leave the task, it has no"
        " model",
        "StatisticsInvalid": "value {index} of the summed statistics is not finite; check the round 0 that was"
        " published",
        "OpeningMalformed": "{path}: {why}; pass a file as `consilium voter open-evaluation` wrote it, or ask the voter"
        " for another",
    }


class OwnersRefusal(ClientError):
    """The node's owner has not allowed this. A later start is refused, too, so no supervisor should try one."""

    exit_code = REFUSED
    MESSAGES: ClassVar = {
        "PolicyInvalid": "{why}",
        "NotAllowed": "this home's policy does not allow the task {task!r}: {objections}. If it should, change"
        " policy.toml",
        "NotApproved": "task {task} is not approved here: run `consilium hospital join {task}`, which shows it first",
        "ApprovalInvalid": "{why}",
        "ApprovalStale": "what was approved as task {task} {why}: nothing was started. See what would run"
        " (`consilium hospital show {task}`), and approve it anew (`consilium hospital join {task}`)",
    }


_FILES = {
    "DataFileMalformed": "{path}, line {line}: {why}; save the table as comma-separated UTF-8 with one header line",
    "FileKindWrong": "{path}: this is {kind}, not text; open or unpack it, and save as CSV (UTF-8) or Parquet",
    "EncodingWrong": "{path}, line {line}: the text is not {encoding}{found}; save it as UTF-8; of a table from an"
    " older Windows program a mapping can say the encoding (under [file])",
    "NullByte": "{path}, line {line}: there is a zero byte, which no text has: the file is damaged or no text;"
    " export it again",
    "LineTooLong": "{path}, line {line}: a {what} has more than {at_most} characters; check that the file is a table;"
    " leave out images and files in cells, and shorten texts",
    "QuoteNotClosed": "{path}, line {line}: a quotation mark is opened in the row that begins here, and not closed in"
    ' any length of a cell; close it, or write a quotation mark that belongs to a text twice ("")',
    "DelimiterWrong": "{path}, line 1: columns seem to be separated by {found!r}, not by {expected!r}; say"
    " delimiter = {toml} under [file] of a mapping, or save with {expected!r} between columns",
    "HeaderMissing": "{path}, line {line}: the first line names none of the task's columns, nor of those that a mapping"
    " names for them; write a header line with the columns' names, or say under [columns] of a mapping which ones they"
    " are (for a file without a header line: header = false, and their positions)",
    "LineWidthWrong": "{path}, line {line}: {found} fields where the first line has {expected}; put cells that hold the"
    " delimiter into quotation marks, and remove titles and sums around the table",
}


class DataError(ClientError):
    """Examples, or their mapping, do not fit the task's schema. Lines count from 1, the header being line 1."""

    MESSAGES = _FILES | {
        "MappingInvalid": "{why}",
        "DataFileMissing": "cannot read {path}: {why}; pass the path of data that this user may read",
        "ParquetUnreadable": "{path}: this is Parquet, but {why}; export it again, unencrypted, or save it as CSV"
        " (UTF-8)",
        "DataFileEmpty": "{path} holds no rows; write a header line and at least one row below it, or fill the folder",
        "ColumnsWrong": "{path}: the columns are not those wanted ({faults}); add, remove or rename these columns, or"
        " say in a mapping which of the file's columns are the task's",
        "ColumnTypeWrong": "{path}, column {column} holds {kind}; export it as whole numbers, floating point, booleans"
        " or text",
        "ColumnAllMissing": "{path}, column {column}{called}: no row has a value that the task knows; check the"
        " mapping's codes and missing, or, if this hospital does not record it, say {column} = {{ absent = true }}"
        " under [columns]",
        "ArraysWrong": "{path}: {why}; bring a folder of images, or a NumPy archive (.npz) of two arrays: images,"
        " uint8, (n, height, width) or (n, height, width, 1 or 3), and labels, whole numbers (n,)",
        "OneClassOnly": "{path}: every label {label} is {present}; held-out data needs several classes: add rows of the"
        " others",
        "TooFewRows": "{rows} rows are fewer than the {at_least} needed; add rows or stay out of this task",
        "TooManyRows": "there are {rows} rows or more, and the most that one hospital may bring is {at_most}; draw a"
        " sample, or join as several hospitals",
    }


class CellError(DataError):
    """`row`: its line in a CSV file, its row in Parquet (`counted` says which). `called`: as `in_file` has it."""

    MESSAGES = _each(
        "{path}, {counted} {row}, column {column}{called}: ",
        {
            "ValueNotNumeric": "the cell is not a number; write a number with a decimal point, or leave the cell empty"
            " if the value is missing; codes that stand for numbers, and texts that mean missing, go into a mapping",
            "ValueIsDate": "the cell is a date or a time, where a number belongs; check which column this is, and"
            " export what the task asks for (an age, say, in years)",
            "ThousandsSeparator": "the cell is not a number: its digits seem to stand in groups; export without"
            " separators between thousands; if the mark is the decimal one, say decimal under [file] of a mapping",
            "DecimalMarkWrong": "the cell is not a number: its decimal mark is not the one expected; say"
            ' decimal = "," under [file] of a mapping (or leave it out for points), the same for all cells',
            "ValueNotFinite": "the cell is not a finite number; leave the cell empty (or write ?) if the value is"
            " missing",
            "CodeUnknown": "the mapping's codes for this column do not have what the cell holds; add it to the column's"
            " codes or, if it means that the value is missing, to its missing",
            "LabelOutOfSchema": "the label is no number of the task's classes; write 0, 1 and so on or give the mapping"
            " codes for it, and remove rows without a label",
            "LabelUnknown": "the label is no name of the task's classes; write it as the task does, or give a mapping"
            " codes for the column, and remove rows without a label",
        },
    )

    def __init__(self, name: str, /, **values: Any) -> None:
        super().__init__(name, **({"counted": "line", "called": ""} | values))


class FolderError(DataError):
    """`file`: the file or folder at fault. `listed`: where labels.csv names it, if it does."""

    MESSAGES = _each(
        "{file}{listed}: ",
        {
            "ClassFolderUnknown": "the folder's name is no class of the task's; name folders as the task names its"
            " classes, each with its examples, or list the files in a labels.csv",
            "FileUnexpected": "this is no example of the task's; put texts (.txt) or images (.png, .jpg, .jpeg, .bmp,"
            " .tif, .tiff), as the task asks for, into a folder for each class, or beside a labels.csv, and nothing"
            " else into these folders",
            "NamesAlike": "another name beside this one reads the same; rename either, in letters that differ",
            "ListedFileMissing": "the list names this file, and there is none; put it there, or correct or remove its"
            " line; names are relative to the folder of labels.csv, with /",
            "ListedTwice": "the list names this file more than once; leave the line that is right",
            "LeadsOutside": "this leads out of the folder; copy the file into the folder: only what is in it is read",
        },
    )

    def __init__(self, name: str, /, **values: Any) -> None:
        super().__init__(name, **({"listed": ""} | values))


class ExampleError(DataError):
    """One text or image is at fault. `at`: its file's name within a folder, or its row in a file."""

    MESSAGES = _each(
        "{path}, {at}: ",
        {
            "TextEmpty": "there is no text; remove the row or the file, or export the text with it",
            "TextTooLong": "the text has more than 131,072 characters, hundreds of times what a model reads of one;"
            " keep the part that says most, or check that this is one text and not many",
            "TextIsNumber": "the cell is a number, where a text belongs; check which column this is, and export texts"
            " as texts",
            "ImageEmpty": "the file is empty; copy or export it again",
            "ImageKindWrong": "what is in the file is no PNG, JPEG, BMP or TIFF image, whatever its name says; export"
            " it as PNG",
            "ImageUnreadable": "the image is damaged or cut off; copy or export it again",
            "ImageTooLarge": "the image says that it has more than 67,108,864 pixels, and is not decoded; export it"
            " smaller, as a cut-out or scaled down",
            "ImageInParts": "the file holds several images: pages, or frames of an animation; export the one that"
            " counts as a PNG of its own",
            "ImageTooDeep": "the image has more than 8 bits a channel, and no one way to bring them to 8 suits all;"
            " export it with 8 bits a channel, in the window in which a reader would look at it",
            "ImageColoursWrong": "the image's colours are neither grey nor RGB (nor a palette of these); export it as"
            " grey or RGB",
            "ImageTransparent": "parts of the image are transparent, and what is behind them is anybody's guess; export"
            " it without transparency",
        },
    )


class NodeError(ClientError):
    """A node cannot go on with a round."""

    MESSAGES: ClassVar = {
        "NotDealt": "round {round} has no cohort with this hospital: the block that assigned cohorts is gone, or the"
        " chain node lags behind; this node looks again with the next block",
        "NotInTask": "{account} joined task {task}, which does not list it: the block that had it is gone, or the chain"
        " node lags behind; start this node again",
        "PendingUpdateLost": "the update committed in round {round} is not on this disk any more, or another is; the"
        " round goes on without",
        "SealingKeyLost": "{path} is not the encryption key that this hospital announced when it joined: restore the"
        " file from a backup; without it nothing can be unmasked with this hospital's help",
        "MaskingChanged": "the chain names other hospitals than those that this node {what} for in round {round}; both"
        " together could show its update, so it does nothing more in this round",
        "NotASurvivor": "this hospital is not among the survivors of round {round}, and has no part in their sum",
        "HeldOutLost": "{path} does not give the secret that this voter's rows were committed under; put it back as it"
        " was, for without it no evaluation of the task can be shown",
        "NothingEvaluated": "no model was evaluated for the ballot of round {round}: it is of the statistics, or says"
        " that the published result does not match; there is no evaluation to open",
    }


class BallotError(NodeError):
    MESSAGES: ClassVar = {
        "BallotLost": "the ballot of round {round} is not on this disk any more; it can neither be revealed nor opened"
    }


class FrameError(NodeError):
    MESSAGES: ClassVar = {"FrameMalformed": "{why}"}


class MismatchError(NodeError):
    """The voter's node votes that the round does not match. Commitments are hexadecimal digits."""

    MESSAGES: ClassVar = {
        "RetreatMismatched": "the canaries of round {round} are said to take back {published}, but the record gives"
        " {expected}; vote that this round does not match",
        "CulpritsMismatched": "round {round} has cohorts without a sum, and hospitals {named} are named for it, but the"
        " evidence gives {found}; vote that this round does not match",
    }


class TransportKeyError(NodeError):
    MESSAGES: ClassVar = {"TransportKeyInvalid": "the node key {path} cannot be used: {why}"}


class ConsentError(ClientError):
    """A command lacks what it needs of its user: a yes, tokens, a stake, a registration."""

    MESSAGES: ClassVar = {
        "AlreadyRunning": "{node} runs in this home already: end it first, or leave it to its work",
        "NotConfirmed": "nothing was done about {about}: answer y, or pass --yes where nobody can answer",
        "WhichTask": "name a task: approved here are {approved}; `consilium hospital tasks` lists all",
        "NotRegistered": "{account} {why}: run `consilium voter register`",
        "Unfunded": "nothing was sent, for {account} lacks {missing}: send it these, and try again",
        "StakeTooSmall": "task {task} locks {bond} tokens of stake, and {free} are free: `consilium voter register"
        " --stake` stakes more, and a task that ends gives its bond back",
        "TooManyTasks": "task {task} would be one more than the {at_most} that `max_tasks` of policy.toml allows at"
        " once: wait until one ends, or raise it",
        "CertificateInvalid": "{path} is no PEM certificate that can be read: ask the aggregator for its ca.crt",
    }


class HomeError(ConsentError):
    MESSAGES: ClassVar = {
        "HomeMissing": "{folder} is no {whose}'s home: run `consilium {whose} init`, or pass --home",
        "HomeTaken": "{folder} is a home already: edit its node.toml, or pass another --home",
        "SameContracts": "{other} is, or was, for the contracts of this address book: two homes of one account would"
        " commit to two different updates or ballots of a round; go on there, or pass the address book of other"
        " contracts",
    }


class AuditError(ClientError):
    """An audit log, or an export of one, does not hold. Lines count from 1."""

    MESSAGES: ClassVar = {
        "AuditUnwritable": "cannot write to the audit log {path}: {why}; nothing leaves this node that is not written"
        " down there, so make room or put the file back, and start the node again",
        "AuditUnreadable": "cannot read {path}: {why}; pass the path of an audit log's export",
        "AuditMalformed": "line {line} of the audit log: {why}; keep the file as it is for the auditor, and make"
        " an export with `consilium hospital export-audit`",
        "AuditBroken": "line {line} of the audit log does not follow the line before it: one of them was changed,"
        " moved, put in or left out since; ask the hospital why",
        "AuditForged": "this is not what the hospital signed: {why}; ask it for another export",
        "AuditRewritten": "this export does not go on from the older one: {why}; ask the hospital why",
        "AuditIncomplete": "{count} of what the chain holds of {hospital} the log does not: {missing}; ask the hospital"
        " what else sends in its name",
    }


class PrivacyError(ClientError):
    """A round cannot be charged to the privacy accountant."""

    MESSAGES: ClassVar = {
        "ChargeChanged": "round {round} of task {task} was charged as {charged} and would now be {now}: rows or task"
        " file changed since; sit this round out",
        "RoundPassed": "round {round} of task {task} was charged, and a later one since, so that its update may have"
        " left: a second one was not paid for; sit this round out",
        "ChargesUnknown": "this account committed to rounds {rounds} of task {place} that the privacy accountant does"
        " not have, as after its file was restored from an older copy, and the task's file, which says what they cost,"
        " cannot be read ({why}): name a mirror that has it in `artifacts` of node.toml",
        "EpsilonLedgerInvalid": "{path}, line {line}, is no charge: restore the file from a backup that knows all"
        " private rounds; without it nobody can say what the rows have cost",
    }


class BudgetError(PrivacyError, OwnersRefusal):
    """Epsilons are at `delta`. `spent` and `would_be`: without and with the round in question."""

    MESSAGES: ClassVar = {
        "EpsilonUnreachable": "no noise keeps {steps} steps of training within epsilon {epsilon:g} at delta {delta:g},"
        " as it is counted here: the operator has to raise epsilon, or delta",
        "BudgetExceeded": "{whose} allows epsilon {allowed:g} at delta {delta:g}; {spent:.4g} is spent, and this would"
        " make it {would_be:.4g}: sit out",
    }


class ModelError(ClientError):
    """Parameters or arrays do not fit the task's model, or it cannot run here. `what` names the array."""

    MESSAGES: ClassVar = {
        "ModelNotInstalled": "this installation cannot run {model}: the package {package} is missing; install it as"
        " docs/models.md says",
        "DeviceMissing": 'node.toml says device = "{device}", and torch finds no such GPU here: check the driver'
        ' (nvidia-smi) and that torch was installed for it, or say device = "cpu"',
        "EncoderAltered": "{path} is not the file of {encoder} that everybody else uses (its SHA-256 differs): install"
        " the package again",
        "UpdateNotFinite": "{bad} of {of} values of the {what} are not finite; lower the task's learning rate or epochs"
        " if these are your own, else refuse the model",
        "ShapeMismatch": "the {what} have shape {found}, but the task makes it {expected}; check that model, data and"
        " task file belong together",
    }


class FingerprintError(ModelError):
    MESSAGES: ClassVar = {
        "FingerprintMalformed": "not a fingerprint of this batch: {why}; it was not made from these rows and models"
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
