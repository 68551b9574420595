"""Rows to predict, from a file, as requests to a server. Only the model's own columns leave this machine."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from consilium_core.strict_json import parse_json

from consilium_operators.market.errors import SaleError

MOST_BYTES: Final = 1 << 28
MOST_BODY: Final = 1 << 23  # of a request, below a server's limit


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a CSV file or of JSON {"rows": […]}, with these columns alone. Raises SaleError (RowsUnreadable)."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        found = _of_json(path.read_bytes()) if path.suffix == ".json" else _of_csv(path)
        rows = [{name: row[name] for name in columns} for row in found]
    except KeyError as error:
        raise SaleError("RowsUnreadable", path=path, why=f"a row lacks the column {error}") from None
    except (OSError, ValueError, csv.Error) as error:
        raise SaleError("RowsUnreadable", path=path, why=error) from None
    if not rows:
        raise SaleError("RowsUnreadable", path=path, why="it has no rows")
    return rows


def _of_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def _of_json(raw: bytes) -> list[Mapping[str, Any]]:
    content = parse_json(raw)
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("it has no list of rows")
    return rows


def requests_of(rows: Sequence[Mapping[str, Any]], most_rows: int) -> Iterator[tuple[bytes, int]]:
    """Bodies of requests with the number of rows of each, within a server's limits."""
    first = 0
    while first < len(rows):
        count = min(most_rows, len(rows) - first)
        body = _body(rows[first : first + count])
        while len(body) > MOST_BODY and count > 1:
            count = max(1, count // 2)
            body = _body(rows[first : first + count])
        yield body, count
        first += count


def _body(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return json.dumps({"rows": list(rows)}, allow_nan=False).encode()
