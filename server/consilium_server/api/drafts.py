"""Task files as documents: JSON that a form edits, and TOML that says the same. Pure."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import tomli_w
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.sale_spec import SaleSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.typed_toml import own_words, read_toml
from consilium_core.visible_text import shown
from pydantic import BaseModel, ValidationError

MOST_NESTED = 16  # tables within tables; a task file needs six
MOST_OF_A_FAULT = 500  # characters


@cache
def task_schema() -> dict[str, Any]:
    """The task file's JSON schema, with titles, descriptions, bounds and defaults."""
    return TaskSpec.model_json_schema()


def text_of(document: dict[str, Any]) -> str:
    """TOML with sections in the schema's order; nulls are left out. Raises ValueError if it is nested too deep."""
    given = _in_order(_plain(document, MOST_NESTED), TaskSpec)
    if isinstance(sale := given.get("sale"), dict):
        given["sale"] = _in_order(sale, SaleSpec)  # the file's end, in its one spelling
    return tomli_w.dumps(given)


def _in_order(table: dict[str, Any], of: type[BaseModel]) -> dict[str, Any]:
    """With the keys in the schema's order, and others after them."""
    return {name: table[name] for name in (*of.model_fields, *table) if name in table}


def document_of(raw: bytes) -> dict[str, Any] | None:
    """The document in a file, with dates and infinities as texts; None if it is not TOML, or nested too deep."""
    try:
        document: dict[str, Any] = _plain(read_toml(raw, "the task file", SpecInvalid), MOST_NESTED)
    except (SpecInvalid, ValueError):
        return None
    return document


def faults_of(error: Exception) -> list[dict[str, str]]:
    """A fault and its keys, with the chosen form of a section after its key (`data.table.features.0`)."""
    found = error.__cause__
    if not isinstance(found, ValidationError):
        return [{"where": "", "what": str(error)}]
    return [
        {"where": _shown(".".join(map(str, one["loc"]))), "what": _shown(own_words(one["msg"]))}
        for one in found.errors()
    ]


def _shown(text: str) -> str:
    return shown(text, MOST_OF_A_FAULT)


def _plain(value: Any, depth: int) -> Any:
    if depth < 0:
        raise ValueError(f"tables and lists are nested deeper than {MOST_NESTED}")
    if isinstance(value, dict):
        return {name: _plain(one, depth - 1) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one, depth - 1) for one in value if one is not None]
    is_json = isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_json else str(value)
