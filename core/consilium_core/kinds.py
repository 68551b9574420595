"""Narrows a type where the caller knows it: an example, a schema or a profile of its model's kind."""

from __future__ import annotations

from typing import TypeVar

Kind = TypeVar("Kind")


def of_kind(kind: type[Kind], value: object) -> Kind:
    """The value with its known type. Raises TypeError, which input from outside cannot cause: it is checked before."""
    if not isinstance(value, kind):
        raise TypeError(f"a {kind.__name__} is needed here, not a {type(value).__name__}")
    return value
