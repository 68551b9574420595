"""Turns one cell into a number, by the rules of its column. Pure. A refused cell gives only the name of its error."""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from consilium_chain.tasks.features import UNKNOWN
from numpy.typing import NDArray

Cell: TypeAlias = str | float | None
"""A file's cell: text without blanks around it, or a number; None without a value."""
DecimalMark: TypeAlias = Literal[".", ","]

OLDEST = 130  # years

_DATE = re.compile(r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{1,2}:\d{2})(?:\D.*)?", re.DOTALL)
_IN_GROUPS = re.compile(r"[+-]?\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?:[.,]\d+)?")
_OTHER_MARK = re.compile(r"[+-]?(?:\d+[.,]\d*|[.,]\d+)(?:[eE][+-]?\d+)?")


def _number(text: str, decimal: DecimalMark) -> float | None:
    """A number, or None. It does not raise, because float's error quotes the text."""
    if "_" in text:  # Python's digit grouping, 1_000, is not a data format
        return None
    if decimal == ",":
        if "." in text:
            return None
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def composed(text: str) -> str:
    """In Unicode's composed form (NFC): programs and file systems use different forms."""
    return unicodedata.normalize("NFC", text)


def key(cell: str | float, decimal: DecimalMark) -> str | float:
    """A cell's key among codes: its number in any form (1, 1.0, 1e0), or else its text."""
    number = _number(cell, decimal) if isinstance(cell, str) else float(cell)
    if number is None:
        return composed(str(cell))
    return "nan" if math.isnan(number) else number


@dataclass(frozen=True)
class Reading:
    """The rule that turns cells into the task's numbers: by codes, or else the number times scale plus offset.

    `missing` and `codes` are by `key`. `only_codes`: a cell with another number is not valid. Other texts never are.
    """

    decimal: DecimalMark
    missing: frozenset[str | float]
    codes: Mapping[str | float, float]
    scale: float = 1.0
    offset: float = 0.0
    only_codes: bool = True

    @classmethod
    def of_texts(
        cls,
        decimal: DecimalMark,
        missing: Iterable[str],
        codes: Mapping[str, float],
        scale: float = 1.0,
        offset: float = 0.0,
        only_codes: bool = True,
    ) -> Reading:
        return cls(
            decimal,
            frozenset(key(text.strip(), decimal) for text in missing),
            {key(text.strip(), decimal): number for text, number in codes.items()},
            scale,
            offset,
            only_codes,
        )

    def number(self, cell: Cell, on: Cell = None) -> float | str:
        """The task's number, NaN if missing; or the name of a CellError, which the caller raises with the row. `on`:
        for `Ages` alone.
        """
        if cell is None or cell == "":
            return math.nan
        known = key(cell, self.decimal)
        if known in self.missing:
            return math.nan
        if self.codes and (self.only_codes or isinstance(known, str) or known in self.codes):
            return self.codes.get(known, "CodeUnknown")
        if known == "nan":
            return "ValueNotFinite"
        if isinstance(known, str):
            return _not_a_number(known)
        number = known * self.scale + self.offset
        return number if math.isfinite(number) else "ValueNotFinite"

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """`number` of each value (n,), with the same bits. NaN is a cell without one. None if a cell needs `number`."""
        if self.codes and self.only_codes:
            return None
        found = np.where(np.isin(values, [one for one in self.missing if isinstance(one, float)]), np.nan, values)
        scaled: NDArray[np.float64] = found * self.scale + self.offset
        return None if np.isinf(scaled).any() else scaled


@dataclass(frozen=True)
class Ages:
    """The rule that turns a birth date and a second date into completed years.

    `missing`: by `key`. `form`: of the dates, by `strptime`; None for ISO dates. `fixed`: the second date, if it is the
    same for all.
    """

    missing: frozenset[str | float]
    form: str | None
    fixed: datetime.date | None

    @classmethod
    def of_texts(cls, missing: Iterable[str], form: str | None, fixed: datetime.date | None) -> Ages:
        return cls(frozenset(key(text.strip(), ".") for text in missing), form, fixed)

    def number(self, cell: Cell, on: Cell = None) -> float | str:
        """Years, NaN if a date is missing; or the name of a CellError."""
        given = [cell] if self.fixed else [cell, on]
        if any(one is None or one == "" or key(one, ".") in self.missing for one in given):
            return math.nan
        dates = [date_of(one, self.form) for one in given]
        born, then = dates[0], self.fixed or dates[-1]
        if born is None or then is None:
            return "DateMalformed"
        years = then.year - born.year - ((then.month, then.day) < (born.month, born.day))
        return float(years) if 0 <= years <= OLDEST else "AgeImpossible"


def date_of(cell: Cell, form: str | None) -> datetime.date | None:
    """A date, or None. It does not raise, because Python's errors quote the text. A time of day is ignored."""
    if isinstance(cell, float):  # 20240131 of Parquet
        cell = str(int(cell)) if cell.is_integer() else ""
    try:
        read = datetime.datetime.fromisoformat if form is None else _by_form(form)
        return read(cell or "").date()
    except (ValueError, re.error):  # the latter: of some malformed formats
        return None


def _by_form(form: str) -> Callable[[str], datetime.datetime]:
    return lambda text: datetime.datetime.strptime(text, form)


DEFAULT = Reading.of_texts(".", [UNKNOWN], {})
"""Without a mapping: decimal points; an empty cell or `?` is a missing value."""


def _not_a_number(text: str) -> str:
    for form, fault in ((_DATE, "ValueIsDate"), (_IN_GROUPS, "ThousandsSeparator"), (_OTHER_MARK, "DecimalMarkWrong")):
        if form.fullmatch(text):
            return fault
    return "ValueNotNumeric"
