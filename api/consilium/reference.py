"""The keys of a task file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from consilium_operators.task_reference import Part


@dataclass(frozen=True)
class TaskReference:
    """`parts`: the sections with their keys. `examples`: the shortest task files, by kind of data, as TOML."""

    parts: list[Part]
    examples: Mapping[str, str]

    @property
    def keys(self) -> pd.DataFrame:
        """By key: its section, `kind` with unit and bounds, `default` as TOML (None: it must be there), and meaning."""
        import pandas as pd

        rows = [
            (part.section, one.name, one.kind, one.default, one.meaning) for part in self.parts for one in part.keys
        ]
        return pd.DataFrame(rows, columns=["section", "key", "kind", "default", "meaning"])

    @property
    def markdown(self) -> str:
        """The whole reference as a page."""
        from consilium_operators.task_reference import as_markdown

        return as_markdown()


def task_reference() -> TaskReference:
    """Every key of a task file: its kind, unit, bounds, default and meaning; and the shortest files."""
    from consilium_operators.task_reference import EXAMPLES, reference

    return TaskReference(reference(), EXAMPLES)
