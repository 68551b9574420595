"""More than a hundred kinds of bad data at the door: each is refused or remarked, with file, row and field.

No word and no number of a row is in what is said or logged.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.door import admitted, answers_to
from consilium_client.data.examples import MOST_ROWS
from consilium_client.errors import DataError
from consilium_core.logs import log_to
from PIL import Image
from raised_faults import raises_fault

SECRET = "Mustermann"  # of a patient
ROWS = 120

RANGES = {
    "age": (0, 120, 60, 15), "temp": (30, 45, 37, 0.7), "skin": (0, 150, 33, 2), "sbp": (40, 260, 130, 20),
    "dbp": (30, 200, 80, 12), "chol": (0, 650, 220, 50), "glucose": (0, 650, 100, 25), "height": (0, 250, 170, 10),
    "weight": (0, 400, 75, 15), "hb": (0, 200, 14, 2), "lactate": (0, 20, 2, 1),
}  # fmt: skip
MODEL = '[model]\nname = "logistic"\n'
TABLE = parse_task_spec(
    b'name = "a ward"\n[data]\nlabel = "ill"\nclasses = ["no", "yes"]\nfeatures = [\n'
    + "".join(
        f'{{ name = "{name}", min = {low}, max = {high}, mean = {mean}, deviation = {deviation} }},\n'
        for name, (low, high, mean, deviation) in RANGES.items()
    ).encode()
    + b'{ kind = "category", name = "sex", values = ["female", "male"] },\n'
    + b'{ kind = "category", name = "pain", values = [1, 2, 3] },\n]\n'
    + MODEL.encode()
)
TEXTS = parse_task_spec(
    b'name = "notes"\n[data]\nkind = "text"\nlabel = "found"\nclasses = ["healthy", "ill"]\n'
    b'[model]\nname = "lora"\nmax_tokens = 8\n'
)
IMAGES = parse_task_spec(
    b'name = "x-rays"\n[data]\nkind = "images"\nclasses = ["normal", "ill"]\nheight = 8\nwidth = 10\n'
    b'[model]\nname = "cnn"\nchannels = [4]\n'
)

Columns = dict[str, list[str]]


def good() -> Columns:
    """A ward's 120 patients, of whom nothing is wrong."""
    random = np.random.default_rng(11)
    columns = {
        name: [f"{value:.3f}" for value in np.clip(random.normal(mean, deviation * 0.8, ROWS), low + 0.1, high)]
        for name, (low, high, mean, deviation) in RANGES.items()
    }
    columns["sex"] = list(random.choice(["female", "male"], ROWS))
    columns["pain"] = list(random.choice(["1", "2", "3"], ROWS))
    columns["ill"] = [str(number) for number in random.permutation([0, 1] * (ROWS // 2))]
    return columns


GOOD = good()


def written(columns: Columns, delimiter: str = ",") -> bytes:
    lines = [delimiter.join(columns), *map(delimiter.join, zip(*columns.values(), strict=True))]
    return ("\n".join(lines) + "\n").encode()


# --- Ways to break it ------------------------------------------------------------------------------------------------


def cell(column: str, text: str) -> bytes:
    """In the fifth row, which is line 6."""
    return written(GOOD | {column: [*GOOD[column][:4], text, *GOOD[column][5:]]})


def numbers(column: str, change: Callable[[float], float], rows: Sequence[int] = range(ROWS)) -> bytes:
    values = [f"{change(float(text)):.3f}" if at in rows else text for at, text in enumerate(GOOD[column])]
    return written(GOOD | {column: values})


def by_label(column: str, no: str, yes: str, mistakes: int = 0) -> bytes:
    values = [yes if label == "1" else no for label in GOOD["ill"]]
    return written(GOOD | {column: [no] * mistakes + values[mistakes:]})


def line(number: int, text: str) -> bytes:
    lines = written(GOOD).decode().splitlines()
    lines[number - 1] = text
    return ("\n".join(lines) + "\n").encode()


def with_rows(*rows: Sequence[str]) -> bytes:
    return written(GOOD) + "".join(",".join(row) + "\n" for row in rows).encode()


def row(at: int, label: str | None = None) -> list[str]:
    cells = [column[at] for column in GOOD.values()]
    return cells if label is None else [*cells[:-1], label]


def other(label: str) -> str:
    return "0" if label == "1" else "1"


def parquet(columns: dict[str, Any]) -> bytes:
    pyarrow.parquet.write_table(pyarrow.table(columns), stream := io.BytesIO())
    return stream.getvalue()


def typed() -> dict[str, Any]:
    texts = {"sex"}
    return {name: values if name in texts else list(map(float, values)) for name, values in GOOD.items()}


def drawn(seed: int, height: int = 8, width: int = 10, low: int = 60) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, 256, (height, width), dtype=np.uint8)


def png(pixels: Any, kind: str = "PNG", **options: Any) -> bytes:
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(stream := io.BytesIO(), kind, **options)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    np.savez(stream := io.BytesIO(), allow_pickle=True, **arrays)
    return stream.getvalue()


Files = dict[str, bytes]


def notes(**more: str) -> Files:
    """A folder of ten texts; by name, others in the class ill."""
    plain = {
        f"{('healthy', 'ill')[at % 2]}/{at}.txt": f"The patient number {at} was seen on the ward.".encode()
        for at in range(10)
    }
    return plain | {f"ill/{name}.txt": text.encode() for name, text in more.items()}


def pictures(**more: bytes) -> Files:
    plain = {f"{('normal', 'ill')[at % 2]}/{at}.png": png(drawn(at)) for at in range(10)}
    return plain | {f"ill/{name}.png": content for name, content in more.items()}


# --- The cases -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    """`says`: the error's name, or the concern's key; `at`: what the message names beside the file; `column`: of the
    concern. `asks`: the node joins only with an answer. `readable`: the file was read to its end.
    """

    content: bytes | Files
    says: str
    at: str = ""
    spec: TaskSpec = field(default=TABLE, repr=False)
    mapping: str = ""
    column: str | None = None
    asks: bool | None = None
    voter: bool = False

    @property
    def readable(self) -> bool:
        return self.asks is not None or self.says in ("ColumnOutOfRange", "ColumnAllMissing", "OneClassOnly")


def asks(content: bytes | Files, concern: str, column: str | None = None, **more: Any) -> Bad:
    return Bad(content, concern, column=column, asks=True, **more)


def told(content: bytes | Files, concern: str, column: str | None = None, **more: Any) -> Bad:
    return Bad(content, concern, column=column, asks=False, **more)


HEAD = ",".join(GOOD)
DATES = '[columns]\nage = { born = "born", on = "seen" }\n'


def dated(born: str, seen: str) -> bytes:
    columns = {"born": ["1950-01-02"] * ROWS, "seen": ["2020-03-04"] * ROWS} | GOOD
    del columns["age"]
    columns["born"][4], columns["seen"][4] = born, seen
    return written(columns)


FILES = {
    "no bytes": Bad(b"", "DataFileEmpty"),
    "a header line alone": Bad(HEAD.encode() + b"\n", "DataFileEmpty"),
    "gzip": Bad(gzip.compress(written(GOOD)), "FileKindWrong"),
    "Excel": Bad(b"PK\x03\x04" + SECRET.encode(), "FileKindWrong"),
    "old Excel": Bad(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "FileKindWrong"),
    "a PDF": Bad(b"%PDF-1.7\n" + SECRET.encode(), "FileKindWrong"),
    "a web page": Bad(b"<!DOCTYPE html><td>" + SECRET.encode(), "FileKindWrong"),
    "SQLite": Bad(b"SQLite format 3\0", "FileKindWrong"),
    "SPSS": Bad(b"$FL2@(#) SPSS DATA FILE", "FileKindWrong"),
    "Stata": Bad(b"<stata_dta><header>", "FileKindWrong"),
    "Feather": Bad(b"ARROW1\0\0", "FileKindWrong"),
    "UTF-16": Bad(written(GOOD).decode().encode("utf-16"), "EncodingWrong", "line 1"),
    "Latin-1": Bad(cell("sex", "m\xe4nnlich").decode().encode("latin-1"), "EncodingWrong", "line 6"),
    "a zero byte": Bad(cell("age", f"{SECRET}\0"), "NullByte", "line 6"),
    "an endless line": Bad(line(6, "," * 2_000_000), "LineTooLong", "line 6"),
    "an endless cell": Bad(cell("age", "9" * 140_000), "LineTooLong", "line 6"),
    "a short line": Bad(line(6, f"{SECRET},1"), "LineWidthWrong", "line 6"),
    "a comma too many": Bad(cell("age", f"{SECRET},1"), "LineWidthWrong", "line 6"),
    "a line of totals": Bad(written(GOOD) + b"Total,120\n", "LineWidthWrong", "line 122"),
    "an open quotation mark": Bad(cell("sex", f'"{SECRET}'), "QuoteNotClosed", "line 6"),
    "a quotation mark amidst": Bad(cell("sex", f'"{SECRET}"x'), "DataFileMalformed", "line 6"),
    "no header line": Bad(written(GOOD).split(b"\n", 1)[1], "HeaderMissing", "line 1"),
    "a title above": Bad(SECRET.encode() + b"\n" + written(GOOD), "HeaderMissing", "line 1"),
    "semicolons": Bad(written(GOOD, ";"), "DelimiterWrong", "line 1"),
    "tabs": Bad(written(GOOD, "\t"), "DelimiterWrong", "line 1"),
    "a column lacks": Bad(written({k: v for k, v in GOOD.items() if k != "hb"}), "ColumnsWrong", "missing: hb"),
    "a name beside": Bad(written(GOOD | {"name": [SECRET] * ROWS}), "ColumnsWrong", "unexpected: name"),
    "a column twice": Bad(
        written(GOOD).replace(b"dbp", b"sbp", 1).replace(b"\n", b"\n", 1), "ColumnsWrong", "named twice: sbp"
    ),
    "too many rows": Bad(HEAD.encode() + b"\n" + (",".join(row(0)) + "\n").encode() * (MOST_ROWS + 1), "TooManyRows"),
    "Parquet cut off": Bad(parquet(typed())[:-9], "ParquetUnreadable"),
    "Parquet of dates": Bad(
        parquet(typed() | {"age": pyarrow.array([571] * ROWS, pyarrow.date32())}), "ColumnTypeWrong", "column age"
    ),
    "Parquet of lists": Bad(parquet(typed() | {"age": [[5.0]] * ROWS}), "ColumnTypeWrong", "column age"),
    "Parquet of texts": Bad(parquet(typed() | {"age": [SECRET] * ROWS}), "ValueNotNumeric", "row 1, column age"),
}

CELLS = {
    "a name": Bad(cell("age", SECRET), "ValueNotNumeric", "line 6, column age"),
    "a unit": Bad(cell("temp", "37.25 °C"), "ValueNotNumeric", "line 6, column temp"),
    "below a limit": Bad(cell("lactate", "<0.31"), "ValueNotNumeric", "line 6, column lactate"),
    "above a limit": Bad(cell("age", "> 89"), "ValueNotNumeric", "line 6, column age"),
    "a percentage": Bad(cell("lactate", "37.25%"), "ValueNotNumeric", "line 6, column lactate"),
    "two numbers": Bad(cell("lactate", "37.25 37.26"), "ValueNotNumeric", "line 6, column lactate"),
    "a range": Bad(cell("sbp", "121-139"), "ValueNotNumeric", "line 6, column sbp"),
    "two pressures": Bad(cell("sbp", "121/79"), "ValueNotNumeric", "line 6, column sbp"),
    "NULL": Bad(cell("hb", "NULL"), "ValueNotNumeric", "line 6, column hb"),
    "NA": Bad(cell("hb", "NA"), "ValueNotNumeric", "line 6, column hb"),
    "a dash": Bad(cell("hb", "-"), "ValueNotNumeric", "line 6, column hb"),
    "Excel's error": Bad(cell("hb", "#DIV/0!"), "ValueNotNumeric", "line 6, column hb"),
    "Excel's formula": Bad(cell("hb", "=B6/C6"), "ValueNotNumeric", "line 6, column hb"),
    "true": Bad(cell("hb", "true"), "ValueNotNumeric", "line 6, column hb"),
    "hexadecimal": Bad(cell("hb", "0x1f"), "ValueNotNumeric", "line 6, column hb"),
    "Python's groups": Bad(cell("hb", "1_4"), "ValueNotNumeric", "line 6, column hb"),
    "an ISO date": Bad(cell("age", "1971-05-17"), "ValueIsDate", "line 6, column age"),
    "a German date": Bad(cell("age", "17.05.1971"), "ValueIsDate", "line 6, column age"),
    "an American date": Bad(cell("age", "05/17/1971"), "ValueIsDate", "line 6, column age"),
    "a time": Bad(cell("age", "10:27"), "ValueIsDate", "line 6, column age"),
    "a decimal comma": Bad(cell("hb", '"14,37"'), "DecimalMarkWrong", "line 6, column hb"),
    "thousands": Bad(cell("chol", '"1,207.5"'), "ThousandsSeparator", "line 6, column chol"),
    "Swiss thousands": Bad(cell("chol", "1'207"), "ThousandsSeparator", "line 6, column chol"),
    "nan": Bad(cell("hb", "nan"), "ValueNotFinite", "line 6, column hb"),
    "infinity": Bad(cell("hb", "-inf"), "ValueNotFinite", "line 6, column hb"),
    "an overflow": Bad(cell("hb", "1e999"), "ValueNotFinite", "line 6, column hb"),
    "a name in capitals": Bad(cell("sex", "MALE"), "CodeUnknown", "line 6, column sex"),
    "a name of another language": Bad(cell("sex", "weiblich"), "CodeUnknown", "line 6, column sex"),
    "a code in place of a name": Bad(cell("sex", "1"), "CodeUnknown", "line 6, column sex"),
    "a text in place of a code": Bad(cell("pain", SECRET), "ValueNotNumeric", "line 6, column pain"),
    "a label of no class": Bad(cell("ill", "2"), "LabelOutOfSchema", "line 6, column ill"),
    "half a label": Bad(cell("ill", "0.5"), "LabelOutOfSchema", "line 6, column ill"),
    "a label in words": Bad(cell("ill", SECRET), "LabelOutOfSchema", "line 6, column ill"),
    "no label": Bad(cell("ill", ""), "LabelOutOfSchema", "line 6, column ill"),
    "a birth date of another form": Bad(dated("17.05.1971", "2020-03-04"), "DateMalformed", "line 6", mapping=DATES),
    "a day that is none": Bad(dated("1971-02-30", "2020-03-04"), "DateMalformed", "line 6", mapping=DATES),
    "born after the visit": Bad(dated("2021-05-17", "2020-03-04"), "AgeImpossible", "line 6", mapping=DATES),
    "older than anybody": Bad(dated("1771-05-17", "2020-03-04"), "AgeImpossible", "line 6", mapping=DATES),
    "no patient": Bad(
        written(GOOD | {"MRN": ["P1"] * 4 + [""] + ["P1"] * (ROWS - 5)}), "PatientMissing", "line 6, column patient",
        mapping='[file]\npatient = "MRN"\n',
    ),
    "a code that the mapping lacks": Bad(
        cell("sex", SECRET), "CodeUnknown", "line 6, column sex", mapping="[columns]\nsex.codes.m = 'male'\n"
    ),
    "a missing text among codes": Bad(
        cell("age", "unknown"), "CodeUnknown", "line 6", mapping='[columns]\nage = { codes = { "> 89" = 90 } }\n'
    ),
    "a mapped column that lacks": Bad(
        written(GOOD), "ColumnsWrong", "missing: Alter", mapping="[columns]\nage = 'Alter'\n"
    ),
    "a mapping with another key": Bad(
        written(GOOD), "MappingInvalid", "separator", mapping="[file]\nseparator = ';'\n"
    ),
    "a mapping to no value": Bad(
        written(GOOD), "MappingInvalid", "sex give man", mapping='[columns]\nsex = { codes = { m = "man" } }\n'
    ),
    "a mapping of one column for two": Bad(
        written(GOOD), "MappingInvalid", "the same column", mapping="[columns]\nsbp = 'dbp'\n"
    ),
}  # fmt: skip


def swap(one: str, another: str) -> bytes:
    return written(GOOD | {one: GOOD[another], another: GOOD[one]})


SOME = range(0, ROWS, 10)  # a tenth of the rows
READABLE = {
    "Fahrenheit in a narrow range": Bad(numbers("temp", lambda c: 1.8 * c + 32), "ColumnOutOfRange", "column temp"),
    "µmol/l in a narrow range": Bad(numbers("lactate", lambda v: 1000 * v), "ColumnOutOfRange", "column lactate"),
    "swapped columns of other ranges": Bad(swap("temp", "chol"), "ColumnOutOfRange", "column temp"),
    "codes from 0": Bad(
        written(GOOD | {"pain": [str(int(one) - 1) for one in GOOD["pain"]]}), "ColumnOutOfRange", "column pain"
    ),
    "a scale too many": Bad(
        written(GOOD), "ColumnOutOfRange", "column sbp", mapping="[columns]\nsbp = { scale = 10 }\n"
    ),
    "a birth year": Bad(numbers("age", lambda age: 2020 - age), "ColumnOutOfRange", "column age"),
    "an empty column": Bad(written(GOOD | {"hb": [""] * ROWS}), "ColumnAllMissing", "column hb"),
    "codes that are all unknown": Bad(written(GOOD | {"pain": ["7"] * ROWS}), "ColumnAllMissing", "column pain"),
    "one class, of a voter": Bad(written(GOOD | {"ill": ["1"] * ROWS}), "OneClassOnly", "the same ill", voter=True),
    "one class, of a hospital": told(written(GOOD | {"ill": ["1"] * ROWS}), "one_class", "ill"),
    "the label once more": asks(by_label("lactate", "0", "1"), "leak", "lactate"),
    "the label's opposite": asks(by_label("lactate", "7.25", "3.25"), "leak", "lactate"),
    "the label, nearly": asks(
        written(GOOD | {"lactate": [f"{(label == '1') * 9 + at / 99:.2f}" for at, label in enumerate(GOOD["ill"])]}),
        "leak", "lactate",
    ),
    "the label as a named value": asks(by_label("sex", "female", "male"), "leak", "sex"),
    "the label as a code": asks(by_label("pain", "1", "3"), "leak", "pain"),
    "the label by a gap": asks(by_label("hb", "", "14.25"), "leak", "hb"),
    "a row twice": asks(with_rows(row(3)), "duplicates"),
    "all rows twice": asks(with_rows(*map(row, range(ROWS))), "duplicates"),
    "a row with another label": asks(with_rows(row(3, other(GOOD["ill"][3]))), "contradicting", "ill"),
    "all rows with another label": asks(
        with_rows(*(row(at, other(GOOD["ill"][at])) for at in range(ROWS))), "contradicting", "ill"
    ),
    "zeros in place of gaps": asks(numbers("chol", lambda _: 0, SOME), "zeros", "chol"),
    "zeros alone": asks(numbers("chol", lambda _: 0), "zeros", "chol"),
    "a pressure of zero": asks(cell("sbp", "0"), "zeros", "sbp"),
    "-1 for a gap": asks(numbers("chol", lambda _: -1, SOME), "placeholders", "chol"),
    "-9 for a gap": asks(numbers("age", lambda _: -9, SOME), "placeholders", "age"),
    "-99 for a gap": asks(numbers("hb", lambda _: -99, SOME), "placeholders", "hb"),
    "999 for a gap": asks(numbers("age", lambda _: 999, SOME), "placeholders", "age"),
    "9999 for a gap": asks(numbers("glucose", lambda _: 9999, SOME), "placeholders", "glucose"),
    "888 for a gap": asks(numbers("weight", lambda _: 888, SOME), "placeholders", "weight"),
    "99 for a gap, within the range": asks(numbers("hb", lambda _: 99, SOME), "placeholders", "hb"),
    "599 for a gap, within the range": asks(numbers("chol", lambda _: 599, SOME), "placeholders", "chol"),
    "swapped pressures": asks(swap("sbp", "dbp"), "swapped", "sbp"),
    "swapped height and weight": asks(swap("height", "weight"), "swapped", "height"),
    "swapped by the mapping": asks(
        written(GOOD), "swapped", "height", mapping="[columns]\nheight = 'weight'\nweight = 'height'\n"
    ),
    "Fahrenheit in a wide range": asks(numbers("skin", lambda c: 1.8 * c + 32), "unit", "skin"),
    "cholesterol in mmol/l": asks(numbers("chol", lambda v: v / 38.67), "unit", "chol"),
    "glucose in mmol/l": asks(numbers("glucose", lambda v: v / 18.016), "unit", "glucose"),
    "height in metres": asks(numbers("height", lambda v: v / 100), "unit", "height"),
    "height in inches": asks(numbers("height", lambda v: v / 2.54), "unit", "height"),
    "weight in pounds": asks(numbers("weight", lambda v: v / 0.45359), "unit", "weight"),
    "haemoglobin in g/l": asks(numbers("hb", lambda v: v * 10), "unit", "hb"),
    "pressure in kPa, forgotten in the mapping": asks(
        written(GOOD), "unit", "dbp", mapping="[columns]\ndbp = { scale = 2.2046 }\n"
    ),
    "a value beyond the range": told(cell("age", "131.5"), "outside", "age"),
    "a code that the task lacks": told(cell("pain", "7"), "unknown_codes", "pain"),
    "a column with gaps": told(written(GOOD | {"hb": GOOD["hb"][:50] + [""] * 70}), "mostly_missing", "hb"),
    "a column of one value": told(written(GOOD | {"hb": ["14.25"] * ROWS}), "constant", "hb"),
    "a column of one name": told(written(GOOD | {"sex": ["male"] * ROWS}), "constant", "sex"),
}  # fmt: skip

NOTE = "The patient number 3 was seen on the ward."
OF_TEXTS = {
    "a text that is empty": Bad(notes(a=""), "TextEmpty", "ill/a.txt", TEXTS),
    "a text as long as a book": Bad(notes(a=SECRET * 20_000), "TextTooLong", "ill/a.txt", TEXTS),
    "a text with a zero byte": Bad(notes(a=f"{SECRET}\0"), "NullByte", "a.txt, line 1", TEXTS),
    "a Word file by another name": Bad(notes() | {"ill/a.txt": b"PK\x03\x04"}, "FileKindWrong", "a.txt", TEXTS),
    "a text in Latin-1": Bad(notes() | {"ill/a.txt": b"M\xfcller"}, "EncodingWrong", "a.txt, line 1", TEXTS),
    "a PDF among texts": Bad(notes() | {"ill/a.pdf": b"%PDF"}, "FileUnexpected", "ill/a.pdf", TEXTS),
    "a class that is none": Bad(notes() | {"sick/a.txt": b"x"}, "ClassFolderUnknown", "sick", TEXTS),
    "a listed file that lacks": Bad(
        {"labels.csv": b"file,label\na.txt,ill\n"}, "ListedFileMissing", "labels.csv, line 2", TEXTS
    ),
    "a file listed twice": Bad(
        {"labels.csv": b"file,label\na.txt,ill\na.txt,healthy\n", "a.txt": b"x"}, "ListedTwice", "line 3", TEXTS
    ),
    "a file listed outside": Bad({"labels.csv": b"file,label\n../a,ill\n"}, "LeadsOutside", "line 2", TEXTS),
    "a label of texts that is no class": Bad(
        f"text,found\n{NOTE},ill\n{NOTE},{SECRET}\n".encode(), "LabelUnknown", "line 3, column found", TEXTS
    ),
    "texts that are numbers": Bad(
        parquet({"text": [57.25], "found": ["ill"]}), "TextIsNumber", "row 1, column text", TEXTS
    ),
    "texts with broken letters": asks(notes(a="Der Patient hustet laut Ã¼ber Nacht."), "broken_letters", spec=TEXTS),
    "texts that repeat": asks(notes(a=NOTE), "duplicates", spec=TEXTS),
    "texts of both classes": asks(
        notes() | {"healthy/a.txt": NOTE.encode()}, "contradicting", spec=TEXTS
    ),
    "codes in place of texts": asks(notes(a="J18", b="I10", c="I21"), "few_words", spec=TEXTS),
    "a text of one word": told(notes(a="unremarkable"), "few_words", spec=TEXTS),
    "texts longer than the model reads": told(notes(), "cut", spec=TEXTS),
}  # fmt: skip

LABELS = np.arange(10, dtype=np.uint8) % 2
STACK = np.stack([drawn(at) for at in range(10)])
OF_IMAGES = {
    "an image of no bytes": Bad(pictures(a=b""), "ImageEmpty", "ill/a.png", IMAGES),
    "an image that is none": Bad(pictures(a=SECRET.encode()), "ImageKindWrong", "ill/a.png", IMAGES),
    "an image that is cut off": Bad(pictures(a=png(drawn(20))[:-40]), "ImageUnreadable", "ill/a.png", IMAGES),
    "an image of several pages": Bad(
        pictures(a=png(Image.fromarray(drawn(20)), "TIFF", save_all=True, append_images=[Image.fromarray(drawn(21))])),
        "ImageInParts", "ill/a.png", IMAGES,
    ),
    "an image of 16 bits": Bad(
        pictures(a=png(drawn(20).astype(np.uint16) * 200)), "ImageTooDeep", "ill/a.png", IMAGES
    ),
    "an image in CMYK": Bad(
        pictures(a=png(Image.new("CMYK", (10, 8)), "JPEG")), "ImageColoursWrong", "ill/a.png", IMAGES
    ),
    "a transparent image": Bad(
        pictures(a=png(Image.new("RGBA", (10, 8), (1, 2, 3, 4)))), "ImageTransparent", "ill/a.png", IMAGES
    ),
    "a text among images": Bad(pictures() | {"ill/a.txt": b"x"}, "FileUnexpected", "ill/a.txt", IMAGES),
    "an archive without labels": Bad(npz(images=STACK), "ArraysWrong", "labels", IMAGES),
    "an archive of floats": Bad(npz(images=STACK / 255, labels=LABELS), "ArraysWrong", "images", IMAGES),
    "an archive with a label too few": Bad(npz(images=STACK, labels=LABELS[1:]), "ArraysWrong", "9 labels", IMAGES),
    "an archive with a label of no class": Bad(
        npz(images=STACK, labels=LABELS + 1), "LabelOutOfSchema", "row 2", IMAGES
    ),
    "images without content": asks(pictures(a=png(np.full((8, 10), 99, np.uint8))), "constant", spec=IMAGES),
    "images that are black": asks(pictures(a=png(drawn(20) // 64)), "dark", spec=IMAGES),
    "images that repeat": asks(pictures(a=png(drawn(1))), "duplicates", spec=IMAGES),
    "images of both classes": asks(pictures(a=png(drawn(2))), "contradicting", spec=IMAGES),
    "thumbnails": told(pictures(a=png(drawn(20, 4, 5))), "enlarged", spec=IMAGES),
    "images of other proportions": told(pictures(a=png(drawn(20, 40, 10))), "stretched", spec=IMAGES),
}  # fmt: skip

KINDS = FILES | CELLS | READABLE | OF_TEXTS | OF_IMAGES


def put(folder: Path, content: bytes | Files) -> Path:
    path = folder / "data"
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    for name, inside in content.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(inside)
    return path


def put_mapping(folder: Path, text: str) -> Path | None:
    if not text:
        return None
    path = folder / "mapping.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_bad_data_stop_at_the_door_or_are_remarked(tmp_path: Path, kind: str) -> None:
    bad = KINDS[kind]
    path, mapping = put(tmp_path, bad.content), put_mapping(tmp_path, bad.mapping)
    events: list[object] = []

    def enter(answers: dict[str, bool | list[str]]) -> Any:
        return admitted(path, bad.spec, mapping, answers, held_out=bad.voter)

    with log_to(lambda *event: events.append(event)):
        if bad.asks is None:
            with pytest.raises(DataError) as refused:
                enter({})
            assert refused.value.name == bad.says
            assert bad.at in str(refused.value)
            if bad.says not in ("TooManyRows", "MappingInvalid"):
                assert str(path) in str(refused.value)
            nothing_leaks(bad, refused.value)
            return
        if bad.asks:
            with raises_fault(DataError, "RemarksUnanswered") as unanswered:
                enter({})
            assert (bad.says, bad.column) in unanswered.value.values["concerns"]
            assert f"{bad.says} = " in str(unanswered.value)
            nothing_leaks(bad, unanswered.value)
            found = enter(dict.fromkeys([key for key, _ in unanswered.value.values["concerns"]], True))
        else:
            found = enter({})
        assert (bad.says, bad.column, bad.asks) in [(one.key, one.column, one.asks) for one in found.remarks]
        found.tell()
    assert found.unneeded == ()
    assert any(f"'concern': '{bad.says}'" in str(event) for event in events)
    assert leaked(bad, str(events)) == []
    assert leaked(bad, repr(found)) == []


def leaked(bad: Bad, said: str) -> list[str]:
    """Words of the data that are in what is said: names, and numbers of three digits and more."""
    raw = bad.content if isinstance(bad.content, bytes) else b"\n".join(bad.content.values())
    known = {word for word in _words(raw[:20_000].decode("latin-1")) if len(word) > 3 and re.search(r"\d", word)}
    return [word for word in _words(said) if word == SECRET or word in known - {bad.says, *_words(bad.at)}]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w.'-]*\w", text))


def nothing_leaks(bad: Bad, error: BaseException | None) -> None:
    while error is not None:
        assert leaked(bad, str(error)) == []
        assert SECRET not in repr(error.args)
        error = error.__cause__ or error.__context__


def test_there_are_a_hundred_kinds_and_thirty_are_readable() -> None:
    assert len(KINDS) == sum(map(len, (FILES, CELLS, READABLE, OF_TEXTS, OF_IMAGES))) > 100
    assert sum(bad.readable for bad in KINDS.values()) >= 30


def test_the_good_table_is_of_no_concern(tmp_path: Path) -> None:
    found = admitted(put(tmp_path, written(GOOD)), TABLE, None, {})
    assert (found.remarks, found.unneeded, found.examples.rows) == ((), (), ROWS)


def test_an_answer_is_of_its_columns_and_is_told_when_nothing_needs_it(tmp_path: Path) -> None:
    gaps = GOOD | {"chol": ["0"] * 9 + GOOD["chol"][9:], "hb": ["-99"] * 9 + GOOD["hb"][9:]}
    path = put(tmp_path, written(gaps | {"sbp": ["0", "0", *GOOD["sbp"][2:]]}))
    given: list[tuple[dict[str, bool | list[str]], set[tuple[str, str]]]] = [
        ({}, {("zeros", "chol"), ("zeros", "sbp"), ("placeholders", "hb")}),
        ({"zeros": ["chol"]}, {("zeros", "sbp"), ("placeholders", "hb")}),
        ({"zeros": ["chol", "sbp"], "placeholders": False}, {("placeholders", "hb")}),
        ({"zeros": False, "placeholders": True}, {("zeros", "chol"), ("zeros", "sbp")}),
    ]  # fmt: skip
    for answers, open_ in given:
        with raises_fault(DataError, "RemarksUnanswered") as caught:
            admitted(path, TABLE, None, answers)
        assert set(caught.value.values["concerns"]) == open_
    assert 'zeros = ["sbp", "chol"]' in str(caught.value)
    found = admitted(path, TABLE, None, {"zeros": ["chol", "sbp", "age"], "placeholders": True, "duplicates": True})
    assert found.unneeded == ("zeros of age", "duplicates")
    assert answers_to(found.remarks) == {"zeros": ["sbp", "chol"], "placeholders": ["hb"]}
    events: list[Any] = []
    with log_to(lambda event, fields: events.append((event, dict(fields)))):
        found.tell()
    assert ("answer-unneeded", {"answer": "duplicates"}) in [
        (event, {"answer": f.get("answer")}) for event, f in events
    ]


def test_coarse_columns_have_equal_rows_by_chance(tmp_path: Path) -> None:
    """A hundred rows of two questions: they are told, and ask nothing."""
    spec = parse_task_spec(
        b'name = "two questions"\n[data]\nlabel = "ill"\nclasses = ["no", "yes"]\nfeatures = [\n'
        b'{ kind = "category", name = "sex", values = ["f", "m"] }, { name = "pain", min = 0, max = 10 } ]\n'
        + MODEL.encode()
    )
    random = np.random.default_rng(0)
    rows = [f"{random.choice(['f', 'm'])},{random.integers(0, 11)},{random.integers(0, 2)}" for _ in range(100)]
    found = admitted(put(tmp_path, ("sex,pain,ill\n" + "\n".join(rows) + "\n").encode()), spec, None, {})
    assert {(one.key, one.asks) for one in found.remarks} == {("duplicates", False), ("contradicting", False)}
