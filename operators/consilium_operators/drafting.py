"""Drafts a task from a table: its schema, and the mapping that reads this table by it. Pure but for reading the file.

The label decides the question: a few values are classes, many numbers an amount, several columns of 0 and 1 a label
each, and a time with the column of its event a survival.

Ranges become public with the task. They are rounded and widened here, and are still those of the table: `task_text`
asks the operator to replace them by values from the literature.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema, TextSchema
from consilium_chain.tasks.features import CategoryFeature, Feature, NumericFeature
from consilium_chain.tasks.questions import MAX_CLASSES, AskedQuestion, Multilabel, Regression, Survival
from consilium_client.data.examples import MOST_ROWS, reading
from consilium_client.data.mapping import FileFormat
from consilium_client.data.mapping import Mapping as ColumnMapping
from consilium_client.data.table.cells import DecimalMark, Reading, key
from consilium_client.data.table.columns import PARQUET, opened
from consilium_client.errors import DataError, shortened
from pydantic import ValidationError

from consilium_operators.errors import OperatorError

MOST_CODES = 20  # different texts of a column that is a category
MOST_LABELS = 20  # different values of a column that looks like a label
NO_VALUE = ("?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "k.A.")
ENCODINGS: tuple[Literal["utf-8", "cp1252", "latin-1"], ...] = ("utf-8", "cp1252", "latin-1")
DELIMITERS: tuple[Literal[",", ";", "\t", "|"], ...] = (",", ";", "\t", "|")
PERIODS = 5  # of a range of times; the last one is not asked
SIGNIFICANT = 2  # digits of a mean and a deviation
# A name or number of a person or a case, or a time: no part of a medical question.
_IDENTIFIES = re.compile(
    r"(?:^|[_\W])(?:id|ids|nr|mrn|pid|name|patient|case|uid|uuid|ssn|index|date|time)(?:$|[_\W])", re.IGNORECASE
)
_UNFIT = re.compile(r"[/\\\x00-\x1f]")  # of a class's name
_WITH_COMMA, _WITH_POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d+\.\d+")


@dataclass(frozen=True)
class Sample:
    """A table as texts by column; "" where a cell has no value."""

    path: Path
    format: FileFormat
    columns: dict[str, list[str]]

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def require(self, column: str) -> list[str]:
        """Raises OperatorError (ColumnUnknown)."""
        if column not in self.columns:
            raise OperatorError("ColumnUnknown", path=self.path, column=column, known=shortened(list(self.columns)))
        return self.columns[column]

    @property
    def reading(self) -> Reading:
        return Reading.of_texts(self.format.decimal, self.format.missing, {}, 1.0, 0.0)

    def different(self, column: str) -> list[str]:
        """The column's values, each once, in order: by number where all are numbers."""
        missing = self.reading.missing
        found = {key(cell, self.format.decimal): cell for cell in self.require(column) if cell}
        values = [one for one in found if one not in missing]
        numeric = [one for one in values if isinstance(one, float)]
        ordered: Sequence[float | str] = (
            sorted(numeric) if len(numeric) == len(values) else sorted(values, key=lambda one: str(one).casefold())
        )
        return [found[one] for one in ordered]


@dataclass(frozen=True)
class Draft:
    """`left_out`: the reason for each column that the task does not use. `codes`: the texts, in order, of each category
    whose values are numbers.

    `counts`: rows of each class, by its name, or with each yes. `unlabelled`: rows without an answer.
    """

    schema: TableSchema | TextSchema
    mapping: ColumnMapping
    left_out: dict[str, str]
    codes: dict[str, list[str]]
    counts: dict[str, int]
    unlabelled: int


def read_sample(path: Path) -> Sample:
    """Reads a CSV file (its delimiter, decimal mark and encoding are guessed) or Parquet. Raises DataError."""
    with reading(path):
        raw = path.read_bytes()
    found = FileFormat() if raw.startswith(PARQUET) else _form(raw)
    with reading(path), path.open("rb") as file:
        rows = opened(file, path, ColumnMapping(file=found))
        names = rows.names or []
        twice = [name for name, count in Counter(names).items() if count > 1]
        if _are_values(names, bool(twice)):
            raise DataError("HeaderMissing", path=path, line=1)
        if twice:
            raise DataError("ColumnsWrong", path=path, faults=f"named twice: {shortened(twice)}")
        table = [[_text(cell) for cell in cells] for _, cells in rows.cells(range(len(names)))]
    if not table:
        raise DataError("DataFileEmpty", path=path)
    if len(table) > MOST_ROWS:
        raise DataError("TooManyRows", rows=len(table), at_most=MOST_ROWS)
    cells = [cell for row in table for cell in row]
    commas, points = (sum(bool(mark.fullmatch(cell)) for cell in cells) for mark in (_WITH_COMMA, _WITH_POINT))
    decimal: DecimalMark = "," if found.delimiter != "," and commas > points else "."
    missing = tuple(one for one in NO_VALUE if one in set(cells)) or ("?",)
    columns = {name: list(column) for name, column in zip(names, zip(*table, strict=True), strict=True)}
    return Sample(path, found.model_copy(update={"decimal": decimal, "missing": missing}), columns)


def _are_values(names: Sequence[str], twice: bool) -> bool:
    """True for a row: all are numbers, or one has a fraction, or some are numbers and a name is there twice."""
    numbers = [number for number in (key(name, ".") for name in names) if isinstance(number, float)]
    return len(numbers) == len(names) or any(not one.is_integer() for one in numbers) or (twice and bool(numbers))


def _form(raw: bytes) -> FileFormat:
    """A CSV file's encoding and delimiter. Its decimal mark shows in the cells."""
    encoding = next(one for one in ENCODINGS if _decodes(raw, one))
    line = raw.split(b"\n", 1)[0].decode(encoding, "replace")
    delimiter = max(DELIMITERS, key=line.count)
    return FileFormat(delimiter=delimiter, encoding=encoding, decimal="." if delimiter == "," else ",")


def _decodes(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _text(cell: str | float | None) -> str:
    return "" if cell is None else cell.strip() if isinstance(cell, str) else f"{cell:.17g}"


def likely_label(sample: Sample) -> str:
    """The last column with two values, or with few; the last of all without such a column."""
    few = [name for name in sample.columns if 2 <= len(sample.different(name)) <= MOST_LABELS]
    two = [name for name in few if len(sample.different(name)) == 2]
    return (two or few or list(sample.columns))[-1]


def likely_sites(sample: Sample) -> str | None:
    """A column that names the hospital, by its own name."""
    words = ("hospital", "site", "centre", "center", "clinic", "klinik", "institution")
    return next((name for name in sample.columns if any(word in name.lower() for word in words)), None)


def to_leave_out(sample: Sample, used: Sequence[str]) -> dict[str, str]:
    """Columns that are no measurements, with the reason, beside the `used` ones (label and sites)."""
    reasons = {name: _looks_personal(sample, name) or _unusable(sample, name) for name in sample.columns}
    return {name: why for name, why in reasons.items() if why and name not in used}


def _unusable(sample: Sample, name: str) -> str | None:
    """The reason why no feature can be made of a column."""
    values = sample.different(name)
    texts = [value for value in values if isinstance(sample.reading.number(value), str)]
    if len(values) < 2:
        return "one value alone"
    if texts and len(values) > MOST_CODES:
        return f"{len(texts)} of its {len(values)} different values are no numbers"
    return None


def _looks_personal(sample: Sample, name: str) -> str | None:
    values = [sample.reading.number(value) for value in sample.different(name)]
    whole = [value for value in values if isinstance(value, float) and value.is_integer()]
    is_number_of_row = len(whole) == len(values) == sample.rows > 20
    if _IDENTIFIES.search(name) or is_number_of_row:
        return "its name or its values look like an identity or a time"
    return None


Label = str | Sequence[str]
"""The column with the answer; several of 0 and 1 for a yes or no each."""


def likely_draft(
    sample: Sample, label: Label | None = None, sites: str | None = None, leave_out: Sequence[str] | None = None, *,
    event: str | None = None, text: str | None = None,
) -> Draft:  # fmt: skip
    """A draft by what is given, and by what is likely where None is. Raises as `draft` does."""
    label = label or likely_label(sample)
    used = [*_listed(label), *([sites] if sites else []), *([event] if event else [])]
    reasons = to_leave_out(sample, used) if leave_out is None else dict.fromkeys(leave_out, "as asked")
    return draft(sample, label, sites, reasons, event=event, text=text)


def draft(
    sample: Sample, label: Label, sites: str | None = None, leave_out: Mapping[str, str] | None = None, *,
    event: str | None = None, text: str | None = None,
) -> Draft:  # fmt: skip
    """`leave_out`: columns, each with the reason. `event`: the column of a survival's event, `label` its time. `text`:
    the column of texts, which are then the only input.

    Raises OperatorError (ColumnUnknown, LabelNotClasses, AnswersNotYesOrNo, NothingToLearnFrom).
    """
    left_out = dict(leave_out or {})
    for name in (*left_out, *(one for one in (sites, text) if one is not None)):
        sample.require(name)
    asked, classes, codes_of_label = _asked(sample, label, event)
    label_codes: dict[str, Any] = {**codes_of_label}
    answers = asked.columns if asked else [label] if isinstance(label, str) else [*label]
    names = [name for name in sample.columns if name not in (*answers, sites, text)]
    features, codes = ([], {}) if text is not None else _features(sample, names, left_out)
    question = {"label": answers[0], "classes": classes} if asked is None else {"question": asked}
    schema: TableSchema | TextSchema
    if text is not None:
        left_out |= {name: "the texts alone are read" for name in names if name not in left_out}
        schema = TextSchema.model_validate({"kind": "text", "text": text, **question})
    else:
        if not features:
            raise OperatorError("NothingToLearnFrom", path=sample.path)
        schema = TableSchema.model_validate({"features": features, **question})
    columns: dict[str, Any] = {
        name: {"codes": {word: float(at) for at, word in enumerate(words)}} for name, words in codes.items()
    }
    if text is not None and classes:  # a text's label is a class's name
        named = zip(sample.different(answers[0]), classes, strict=True)
        label_codes = {cell: name for cell, name in named if cell != name}
    if label_codes:
        columns[answers[0]] = {"codes": label_codes}
    mapping = ColumnMapping.model_validate({"file": sample.format, "columns": columns})
    mapping.require_fits(schema)
    counts, unlabelled = _counted(sample, answers, classes, asked)
    return Draft(schema, mapping, left_out, codes, counts, unlabelled)


def _features(
    sample: Sample, names: Sequence[str], left_out: dict[str, str]
) -> tuple[list[Feature], dict[str, list[str]]]:
    """Features, and the texts of categories whose values are numbers. Adds columns of no use to `left_out`."""
    features: list[Feature] = []
    codes: dict[str, list[str]] = {}
    for name in (name for name in names if name not in left_out):
        if why := _unusable(sample, name):
            left_out[name] = why
            continue
        values = sample.different(name)
        if any(isinstance(sample.reading.number(value), str) for value in values):
            named = _named(name, values)
            if named is None:
                codes[name] = values
            numbers = [float(number) for number in range(len(values))]
            features.append(named or CategoryFeature(kind="category", name=name, values=numbers))
        else:
            features.append(_numeric(name, list(_numbers(sample, name))))
    return features, codes


def _listed(label: Label) -> list[str]:
    return [label] if isinstance(label, str) else [*label]


def _asked(sample: Sample, label: Label, event: str | None) -> tuple[AskedQuestion | None, list[str], dict[str, float]]:
    """The question, or else names and codes of classes."""
    answers = _listed(label)
    if event is not None:
        sample.require(event)
        _require_yes_or_no(sample, [event])
        _require_numbers(sample, answers[0])
        most = _numeric(answers[0], [0.0, *_numbers(sample, answers[0])]).max
        bounds = [_rounded(most * part / PERIODS, SIGNIFICANT) for part in range(1, PERIODS)]
        return Survival(kind="survival", time=answers[0], event=event, bounds=bounds), [], {}
    if len(answers) > 1:
        _require_yes_or_no(sample, answers)
        return Multilabel(kind="multilabel", labels=answers), [], {}
    values = sample.different(answers[0])
    numbers = [sample.reading.number(value) for value in values]
    if len(values) > MOST_LABELS and all(isinstance(number, float) for number in numbers):
        found = _numeric(answers[0], list(_numbers(sample, answers[0])))
        return (
            Regression(
                kind="regression", label=found.name, min=found.min, max=found.max,
                mean=found.mean or 0.0, deviation=found.deviation or found.max,
            ),
            [], {},
        )  # fmt: skip
    classes, codes = _classes(sample, answers[0])
    return None, classes, codes


def _require_yes_or_no(sample: Sample, columns: Sequence[str]) -> None:
    for name in columns:
        sample.require(name)
        if not {sample.reading.number(value) for value in sample.different(name)} <= {0.0, 1.0}:
            raise OperatorError("AnswersNotYesOrNo", path=sample.path, column=name)


def _require_numbers(sample: Sample, column: str) -> None:
    numbers = [sample.reading.number(value) for value in sample.different(column)]
    if len(numbers) < 2 or any(isinstance(one, str) or one < 0 for one in numbers):
        raise OperatorError("TimesNotNumbers", path=sample.path, column=column)


def _counted(
    sample: Sample, answers: Sequence[str], classes: Sequence[str], asked: AskedQuestion | None
) -> tuple[dict[str, int], int]:
    """Rows by class or with each yes, and rows without an answer."""
    mark = sample.format.decimal
    keys = {name: [key(cell, mark) if cell else "" for cell in sample.columns[name]] for name in answers}
    missing = sample.reading.missing
    unlabelled = sum(any(one == "" or one in missing for one in row) for row in zip(*keys.values(), strict=True))
    if asked is None:
        by_key = {key(text, mark): name for text, name in zip(sample.different(answers[0]), classes, strict=True)}
        found = Counter(by_key.get(one) for one in keys[answers[0]])
        return {name: found[name] for name in classes}, unlabelled
    yes = [] if isinstance(asked, Regression) else [asked.event] if isinstance(asked, Survival) else answers
    return {name: keys[name].count(1.0) for name in yes}, unlabelled


def _named(name: str, values: list[str]) -> CategoryFeature | None:
    """A column whose texts are the task's own values; None if one of them cannot be a name, such as a number."""
    try:
        found = CategoryFeature(kind="category", name=name, values=values)
    except ValidationError:
        return None
    return found if found.is_named else None


def _numbers(sample: Sample, name: str) -> Iterator[float]:
    for cell in sample.columns[name]:
        number = sample.reading.number(cell)
        if isinstance(number, float) and not math.isnan(number):
            yield number


def _classes(sample: Sample, label: str) -> tuple[list[str], dict[str, float]]:
    """Names of the classes; and codes, where the file's numbers are not the classes' own."""
    sample.require(label)
    values = sample.different(label)
    if not 2 <= len(values) <= min(MOST_LABELS, MAX_CLASSES):
        raise OperatorError("LabelNotClasses", path=sample.path, column=label, found=len(values), at_most=MOST_LABELS)
    numbers = [key(value, sample.format.decimal) for value in values]
    if numbers == [0.0, 1.0]:
        return ["no", "yes"], {}
    if numbers == list(map(float, range(len(values)))):
        return [str(number) for number in range(len(values))], {}
    # A class's name has no slash and no control character, and a number as a name would be read as a class's number.
    if all(isinstance(number, str) and not _UNFIT.search(number) and len(number) <= 100 for number in numbers):
        return values, {}
    names = [f"class {_UNFIT.sub('-', value)}"[:100] for value in values]
    if len(set(names)) < len(names):
        names = [f"class {at}" for at in range(len(values))]
    return names, {value: float(at) for at, value in enumerate(values)}


def _numeric(name: str, numbers: Sequence[float]) -> NumericFeature:
    """A range that is twice as wide as the values, in round numbers; a mean and a deviation of two digits."""
    low, high = min(numbers), max(numbers)
    if (low, high) == (0, 1) and set(numbers) == {0, 1}:
        return NumericFeature(name=name, min=0, max=1, mean=0.5, deviation=0.5)
    width = high - low
    step = 10.0 ** math.floor(math.log10(width))
    least = 0.0 if 0 <= low < width else math.floor((low - width / 2) / step) * step
    most = math.ceil((high + width / 2) / step) * step
    least, most = _rounded(least, 12), _rounded(most, 12)
    mean = min(max(_rounded(float(np.mean(numbers)), 3), least), most)
    deviation = min(max(_rounded(float(np.std(numbers)), SIGNIFICANT), (most - least) / 500), (most - least) / 2)
    return NumericFeature(name=name, min=least, max=most, mean=mean, deviation=_rounded(deviation, SIGNIFICANT + 1))


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
