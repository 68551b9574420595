"""Turns one cell into a number, by the rules of its column. Pure. A refused cell gives only the name of its error."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Cell: TypeAlias = str | float | None
"""A file's cell: text without blanks around it, or a number; None without a value."""
DecimalMark: TypeAlias = Literal[".", ","]

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


def key(cell: str | float, decimal: DecimalMark) -> str | float:
    """A cell's key among codes: its number in any form (1, 1.0, 1e0), or else its text."""
    number = _number(cell, decimal) if isinstance(cell, str) else float(cell)
    if number is None:
        return cell
    return "nan" if math.isnan(number) else number


@dataclass(frozen=True)
class Reading:
    """The rule that turns cells into the task's numbers: by codes, or else the number times scale plus offset.

    `missing` and `codes` are by `key`. With codes, only they are valid values.
    """

    decimal: DecimalMark
    missing: frozenset[str | float]
    codes: Mapping[str | float, float]
    scale: float = 1.0
    offset: float = 0.0

    @classmethod
    def of_texts(
        cls, decimal: DecimalMark, missing: Iterable[str], codes: Mapping[str, float], scale: float, offset: float
    ) -> Reading:
        return cls(
            decimal,
            frozenset(key(text.strip(), decimal) for text in missing),
            {key(text.strip(), decimal): number for text, number in codes.items()},
            scale,
            offset,
        )

    def number(self, cell: Cell) -> float | str:
        """The task's number, NaN if missing; or the name of a CellError, which the caller raises with the row."""
        if cell is None or cell == "":
            return math.nan
        known = key(cell, self.decimal)
        if known in self.missing:
            return math.nan
        if self.codes:
            return self.codes.get(known, "CodeUnknown")
        if known == "nan":
            return "ValueNotFinite"
        if isinstance(known, str):
            return _not_a_number(known)
        number = known * self.scale + self.offset
        return number if math.isfinite(number) else "ValueNotFinite"


DEFAULT = Reading.of_texts(".", ["?"], {}, 1.0, 0.0)
"""Without a mapping: decimal points; an empty cell or `?` is a missing value."""


def _not_a_number(text: str) -> str:
    for form, fault in ((_DATE, "ValueIsDate"), (_IN_GROUPS, "ThousandsSeparator"), (_OTHER_MARK, "DecimalMarkWrong")):
        if form.fullmatch(text):
            return fault
    return "ValueNotNumeric"
