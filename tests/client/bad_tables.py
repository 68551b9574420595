"""Kinds of bad tables: files, cells, readable columns and rows, and answers to other questions than a class."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow
import pyarrow.parquet
from bad_data import (
    BOTH,
    DEATH,
    GOOD,
    RANGES,
    RARE,
    ROWS,
    SECRET,
    STAY,
    Bad,
    asks,
    by_label,
    cell,
    line,
    numbers,
    other,
    parquet,
    row,
    told,
    typed,
    with_rows,
    written,
)
from consilium_client.data.examples import MOST_ROWS

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
    "a second header line, of another export": Bad(with_rows(list(GOOD)), "ValueNotNumeric", "line 122, column age"),
    "male and female as 1 and 2, in some rows": Bad(cell("sex", "2"), "CodeUnknown", "line 6, column sex"),
    "a day of Excel among birth dates": Bad(dated("26234", "2020-03-04"), "DateMalformed", "line 6", mapping=DATES),
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


def exchanged(one: str, another: str) -> bytes:
    """In every second row."""
    pairs = [(a, b) if at % 2 else (b, a) for at, (a, b) in enumerate(zip(GOOD[one], GOOD[another], strict=True))]
    return written(GOOD | {one: [a for a, _ in pairs], another: [b for _, b in pairs]})


def last_row(of: Callable[[list[float]], float]) -> bytes:
    cells = [f"{of(list(map(float, GOOD[name]))):.3f}" if name in RANGES else GOOD[name][0] for name in GOOD]
    return with_rows(cells)


def noisy(rows: int) -> bytes:
    """So many rows once more, with a thousandth added to each measurement."""
    again = [
        [f"{float(text) + 0.001:.3f}" if name in RANGES else text for name, text in zip(GOOD, row(at), strict=True)]
        for at in range(rows)
    ]
    return with_rows(*again)


def answered(**answers: Sequence[str]) -> bytes:
    return written(
        {name: cells for name, cells in GOOD.items() if name != "ill"} | {k: [*v] for k, v in answers.items()}
    )


def in_fifth(text: str, other: str = "1") -> list[str]:
    return [other] * 4 + [text] + [other] * (ROWS - 5)


MEAN_OF_HB = f"{np.mean([*map(float, GOOD['hb'][:80])]):.2f}"
COUNTS = [str(at % 50) for at in range(ROWS)]
MANY_NO = [str(int(at % 10 == 0)) for at in range(ROWS)]
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
    "days of Excel": Bad(numbers("age", lambda v: 44_000 - 365 * v), "ColumnOutOfRange", "column age"),
    "ages in months": Bad(numbers("age", lambda v: 12 * v), "ColumnOutOfRange", "column age"),
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
    "99 for an age, among lower ones": asks(
        numbers("age", lambda age: 99 if age > 70 else age), "placeholders", "age"
    ),
    "cholesterol in mmol/l in half of the rows": asks(
        numbers("chol", lambda v: v / 38.67, range(0, ROWS, 2)), "mixed_units", "chol"
    ),
    "ages in months in some rows": asks(numbers("age", lambda v: 12 * v, SOME), "mixed_units", "age"),
    "a lost decimal point in half of the rows": asks(
        numbers("hb", lambda v: round(10 * v), range(0, ROWS, 2)), "mixed_units", "hb"
    ),
    "Fahrenheit in a third of the rows": asks(
        numbers("skin", lambda c: 9 / 5 * c + 32, range(0, ROWS, 3)), "mixed_units", "skin"
    ),
    "days of Excel in some rows": asks(numbers("age", lambda v: 44_000 - 365 * v, SOME), "outside", "age"),
    "a value a thousand times too large": asks(numbers("hb", lambda v: 1000 * v, [4]), "outside", "hb"),
    "a minus too many": asks(numbers("age", lambda v: -v, [4]), "outside", "age"),
    "a share in place of percents": asks(numbers("lactate", lambda v: v / 100), "unit", "lactate"),
    "pressures swapped in half of the rows": asks(exchanged("sbp", "dbp"), "swapped", "sbp"),
    "height and weight swapped in half of the rows": asks(exchanged("height", "weight"), "swapped", "weight"),
    "a column copied": asks(written(GOOD | {"dbp": GOOD["sbp"]}), "copied", "dbp"),
    "a row number": asks(written(GOOD | {"age": [str(at + 1) for at in range(ROWS)]}), "numbering", "age"),
    "gaps filled with the mean": asks(written(GOOD | {"hb": GOOD["hb"][:80] + [MEAN_OF_HB] * 40}), "filled", "hb"),
    "rows again, with noise": asks(noisy(30), "near_duplicates"),
    "a visit a year later": asks(
        with_rows(*([f"{float(row(at)[0]) + 1:.3f}", *row(at)[1:]] for at in range(30))), "near_duplicates"
    ),
    "a last row of sums": asks(last_row(sum), "totals"),
    "a last row of means": asks(last_row(lambda column: float(np.mean(column))), "totals"),
    "all rows of one patient": asks(
        written(GOOD | {"MRN": ["P1"] * ROWS}), "one_patient", mapping='[file]\npatient = "MRN"\n'
    ),
    "inverted labels of a rare class": asks(
        written(GOOD | {"ill": [*map(other, MANY_NO)]}), "inverted", "ill", spec=RARE
    ),
    "amounts that are all the same": told(answered(stay=["7"] * ROWS), "one_class", "stay", spec=STAY),
    "the amount as a column": asks(
        answered(age=COUNTS, stay=COUNTS), "leak", "age", spec=STAY
    ),
    "no event in any row": told(answered(days=COUNTS, died=["0"] * ROWS), "one_class", "days and died", spec=DEATH),
    "the time as a column": asks(
        answered(age=COUNTS, days=COUNTS, died=MANY_NO), "leak", "age", spec=DEATH
    ),
    "a label of several as a column": asks(
        answered(lactate=MANY_NO, cough=MANY_NO, fever=GOOD["ill"]), "leak", "lactate", spec=BOTH
    ),
    "a value beyond the range": told(cell("age", "131.5"), "outside", "age"),
    "a code that the task lacks": told(cell("pain", "7"), "unknown_codes", "pain"),
    "a column with gaps": told(written(GOOD | {"hb": GOOD["hb"][:50] + [""] * 70}), "mostly_missing", "hb"),
    "a column of one value": told(written(GOOD | {"hb": ["14.25"] * ROWS}), "constant", "hb"),
    "a column of one name": told(written(GOOD | {"sex": ["male"] * ROWS}), "constant", "sex"),
}  # fmt: skip

QUESTIONS = {
    "an amount that lacks": Bad(answered(stay=in_fifth("")), "AnswerMissing", "line 6, column stay", STAY),
    "an amount in words": Bad(answered(stay=in_fifth(SECRET)), "ValueNotNumeric", "line 6, column stay", STAY),
    "a date for an amount": Bad(answered(stay=in_fifth("2021-05-17")), "ValueIsDate", "line 6, column stay", STAY),
    "a time below 0": Bad(answered(days=in_fifth("-3"), died=MANY_NO), "TimeNegative", "line 6, column days", DEATH),
    "a time that lacks": Bad(answered(days=in_fifth(""), died=MANY_NO), "AnswerMissing", "line 6, column days", DEATH),
    "an event of 1 and 2": Bad(
        answered(days=COUNTS, died=in_fifth("2")), "AnswerNotYesOrNo", "line 6, column died", DEATH
    ),
    "an event's date": Bad(
        answered(days=COUNTS, died=in_fifth("2021-05-17")), "ValueIsDate", "line 6, column died", DEATH
    ),
    "a label of several that lacks": Bad(
        answered(cough=in_fifth(""), fever=MANY_NO), "AnswerMissing", "line 6, column cough", BOTH
    ),
    "a label of several by its name": Bad(
        answered(cough=in_fifth(SECRET), fever=MANY_NO), "ValueNotNumeric", "line 6, column cough", BOTH
    ),
    "one label of several lacks": Bad(answered(cough=MANY_NO), "ColumnsWrong", "missing: fever", BOTH),
}  # fmt: skip
