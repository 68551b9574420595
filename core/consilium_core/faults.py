"""Errors that tell one of several faults: a class for each decision of a caller, a message for each fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class FaultError(Exception):
    """An error with a table of faults. `name` is the fault's printed name, and `values` are what its message shows.

    A subclass has the messages of its faults: `str.format` templates by name, whose fields are the values. Raises
    KeyError where the table has no such fault, or its message another field: a mistake of the code that raises it.
    """

    MESSAGES: ClassVar[Mapping[str, str]] = {}

    def __init__(self, name: str, /, **values: Any) -> None:
        self.name, self.values = name, values
        super().__init__(self.MESSAGES[name].format(**values))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.name, self.values)


def _again(kind: type[FaultError], name: str, values: Mapping[str, Any]) -> FaultError:
    return kind(name, **values)


def printed_name(error: Exception) -> str:
    """The name that screens show, and that the guides list errors by: a fault's own, else the class's."""
    return error.name if isinstance(error, FaultError) else type(error).__name__
