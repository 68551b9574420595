"""Pages by cursor. A cursor is the position of a page's last row in the order of the list, sealed by the server.

A page begins behind its cursor's position. So it skips no row and repeats none, also when rows come or go before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Select, and_, false, or_
from sqlalchemy.orm import Session

from consilium_server.api.sessions import Seal
from consilium_server.errors import RequestRefused

LARGEST_PAGE = 200

Row = TypeVar("Row")
RowPosition = list[int | str]  # of a row in an order: its values of the columns that the order is by


@dataclass(frozen=True)
class PageRequest:
    """`scope`: the request without cursor and limit; a cursor fits no other."""

    scope: str
    limit: int
    cursor: str | None
    seal: Seal

    def start(self) -> RowPosition | None:
        """The position behind which the page begins; None for the first page. Raises RequestRefused (CursorInvalid)."""
        if self.cursor is None:
            return None
        content = self.seal.opened(self._purpose, self.cursor)
        if content is None:
            raise RequestRefused("CursorInvalid")
        return list(json.loads(content))

    def end(self, position: Sequence[int | str]) -> str:
        """The cursor of the page behind this position."""
        return self.seal.sealed(self._purpose, json.dumps(list(position)).encode())

    def cut(self, rows: Sequence[Row], position_of: Callable[[Row], Sequence[int | str]]) -> Cut[Row]:
        """The page, given its rows and one more if there is another page."""
        page = list(rows[: self.limit])
        return Cut(page, self.end(position_of(page[-1])) if len(rows) > self.limit else None)

    def read(self, db: Session, query: Select[Any], columns: Sequence[Any], descending: bool = False) -> Cut[Any]:
        """The page of a query in the order of these columns, which the query selects. Raises as `start`."""
        query = query.where(*behind(columns, self.start(), descending)).limit(self.limit + 1)
        query = query.order_by(*(column.desc() if descending else column.asc() for column in columns))
        return self.cut(db.execute(query).all(), lambda row: [getattr(row, column.key) for column in columns])

    @property
    def _purpose(self) -> str:
        return f"cursor {self.scope}"


@dataclass(frozen=True)
class Cut(Generic[Row]):
    """The rows of a page, and the cursor of the next one."""

    rows: list[Row]
    next: str | None


def behind(columns: Sequence[Any], position: RowPosition | None, descending: bool) -> list[ColumnElement[bool]]:
    """The condition that a row lies behind a position, by the columns in their order."""
    if position is None:
        return []
    condition: ColumnElement[bool] = false()
    for depth, (column, value) in enumerate(zip(columns, position, strict=True)):
        equal = [c == v for c, v in zip(columns[:depth], position[:depth], strict=True)]
        condition = or_(condition, and_(*equal, column < value if descending else column > value))
    return [condition]
