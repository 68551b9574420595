"""Errors with a table of faults: a class for each decision of a caller, a message for each fault."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar


class Fault(Exception):
    """Root of all rooms' errors. `name`: by default the class's."""

    name: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__name__

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The error's fields by name."""
        return dict(vars(self))


class FaultError(Fault):
    """An error with a table of faults. `name`: the fault's printed name. `values`: the fields of its message.

    A subclass has the messages of its faults: `str.format` templates by name. Raises KeyError if the table lacks the
    fault, or the values lack a field: the raising code is wrong then.
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
    """The name on screens and in the guides: a fault's own, else the class's."""
    return error.name if isinstance(error, FaultError) else type(error).__name__
