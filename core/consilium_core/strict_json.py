"""JSON of strangers, with one meaning for every reader. Pure."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic_core import from_json


class _Twice(ValueError):
    pass


def parse_json(raw: bytes) -> object:
    """The value of JSON in UTF-8. Parses twice: Rust's parser bounds nesting, Python's sees repeated names. Raises
    ValueError, which is not chained, since the parsers' errors may quote the text.
    """
    try:
        from_json(raw, allow_inf_nan=False)
        found: object = json.loads(raw, object_pairs_hook=_once, parse_float=_finite)
        return found
    except _Twice:
        why = "an object has the same name twice"
    except (ValueError, RecursionError):
        why = (
            "it is not JSON in UTF-8, has NaN, a number too large or with thousands of digits, or is nested too deeply"
        )
    raise ValueError(why)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):  # as 1e999, which other readers refuse
        raise ValueError
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice
    return found
