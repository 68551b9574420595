"""Lays out results of measurements in few lines, each short enough to be read and compared."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

LONGEST_LINE = 240  # characters, of which the last may be a comma


def laid_out(value: Any, indent: str = "", taken: int = 0) -> str:
    """JSON with one line for each value that fits on one. Another value has a line for each part; numbers, texts and
    lists of them are filled into lines. `taken`: characters that stand before it on its first line. Only a text that is
    longer than a line makes a longer line.
    """
    flat = json.dumps(value)
    if len(indent) + taken + len(flat) < LONGEST_LINE or not value or not isinstance(value, (dict, list)):
        return flat
    named = value.items() if isinstance(value, dict) else ((None, one) for one in value)
    parts = [("" if name is None else f"{json.dumps(name)}: ", one) for name, one in named]
    deeper = f"{indent}  "
    laid = [name + laid_out(one, deeper, len(name)) for name, one in parts]
    plain = [_is_plain(one) and "\n" not in text for (_, one), text in zip(parts, laid, strict=True)]
    room = LONGEST_LINE - len(indent) - 1
    if all(plain) and taken + len(laid[0]) + len("],") <= room:
        lines = _filled(laid, room, room - taken)
        return flat[0] + f"\n{indent} ".join(lines) + flat[-1]
    lines = []
    for shares, group in itertools.groupby(zip(plain, laid, strict=True), key=lambda one: one[0]):
        some = [text for _, text in group]
        lines += [line.removesuffix(",") for line in _filled(some, room - 1, room - 1)] if shares else some
    return f"{flat[0]}\n{deeper}" + f",\n{deeper}".join(lines) + f"\n{indent}{flat[-1]}"


def _is_plain(value: Any) -> bool:
    """A number, a text, or a list of them."""
    parts = value if isinstance(value, list) else [value]
    return not any(isinstance(one, (list, dict)) for one in parts)


def _filled(texts: Sequence[str], room: int, first: int) -> list[str]:
    """Lines of as many texts as fit, each line but the last with a comma at its end. `first`: the first line's room."""
    lines = [""]
    for text in texts:
        if lines[-1] and len(lines[-1]) + len(text) + len(" ],") > (first if len(lines) == 1 else room):
            lines.append("")
        lines[-1] += f" {text}," if lines[-1] else f"{text},"
    return [*lines[:-1], lines[-1].removesuffix(",")]


def columns_of(rows: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[dict[str, Any]]:
    """Rows that agree in all fields of `by` as one: a field that is the same in all of them once, any other as the list
    of its values. No value may be a list. `rows_again` is the inverse, up to the order of groups.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((tuple(row), *(row.get(name) for name in by)), []).append(row)
    found = []
    for members in groups.values():
        columns = {name: [row[name] for row in members] for name in members[0]}
        same = {name: all(value == values[0] for value in values) for name, values in columns.items()}
        if len(members) > 1 and all(same.values()):
            raise ValueError(f"rows that are the same in every field: {members[0]}")
        found.append({name: values[0] if same[name] else values for name, values in columns.items()})
    return found


def rows_again(columns: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows that `columns_of` put together."""
    rows = []
    for group in columns:
        count = max((len(value) for value in group.values() if isinstance(value, list)), default=1)
        rows += [
            {name: value[index] if isinstance(value, list) else value for name, value in group.items()}
            for index in range(count)
        ]
    return rows
