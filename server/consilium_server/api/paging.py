"""Pages by cursor: where the last page ended, in the order of the question, and sealed. Pure but for the seal's secret.

A page begins behind its cursor's place, whatever came or went before it, so that rows are neither skipped nor seen
twice.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, and_, false, or_

from consilium_server.api.sessions import Seal
from consilium_server.errors import RequestRefused

LARGEST_PAGE = 200
_TAG = 16  # bytes

Row = TypeVar("Row")
Place = list[int | str]  # of a row in an order: its values of what is sorted by


@dataclass(frozen=True)
class Asked:
    """`scope`: the question without cursor and limit; a cursor fits no other."""

    scope: str
    limit: int
    cursor: str | None
    seal: Seal

    def start(self) -> Place | None:
        """Behind which place the page begins. Raises CursorInvalid."""
        if self.cursor is None:
            return None
        try:
            raw = base64.b64decode(self.cursor + "=" * (-len(self.cursor) % 4), altchars=b"-_", validate=True)
        except ValueError as error:
            raise RequestRefused("CursorInvalid") from error
        tag, content = raw[:_TAG], raw[_TAG:]
        if len(tag) != _TAG or not self.seal.fits("cursor", self.scope.encode() + b"\0" + content, tag):
            raise RequestRefused("CursorInvalid")
        return list(json.loads(content))

    def end(self, place: Place) -> str:
        content = json.dumps(place).encode()
        tag = self.seal.tag("cursor", self.scope.encode() + b"\0" + content)[:_TAG]
        return base64.urlsafe_b64encode(tag + content).rstrip(b"=").decode()

    def cut(self, rows: Sequence[Row], place: Callable[[Row], Place]) -> Cut[Row]:
        """The page, of rows that begin where it does and of which there is one more if there is another page."""
        page = list(rows[: self.limit])
        return Cut(page, self.end(place(page[-1])) if len(rows) > self.limit else None)


@dataclass(frozen=True)
class Cut(Generic[Row]):
    rows: list[Row]
    next: str | None


def behind(columns: Sequence[Any], place: Place | None, descending: bool) -> list[ColumnElement[bool]]:
    """The condition that a row lies behind a place, by the columns in their order."""
    if place is None:
        return []
    found: ColumnElement[bool] = false()
    for depth, (column, value) in enumerate(zip(columns, place, strict=True)):
        before = [c == v for c, v in zip(columns[:depth], place[:depth], strict=True)]
        found = or_(found, and_(*before, column < value if descending else column > value))
    return [found]
