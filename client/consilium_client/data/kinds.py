"""The kinds of examples: tables, texts and images.

A new kind is a folder beside this module, with a `Kind` in its `kind` module, and an entry in `KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_client.data.examples import Examples, Refusal, Row, Source, require_classes
from consilium_client.data.profile import Profile
from consilium_client.data.use import Use, Used

# A schema's kind: its folder here, imported when needed.
KINDS = {"table": "table", "text": "text", "corpus": "text", "images": "image"}

Raw = TypeVar("Raw")
Schema = TypeVar("Schema")


class Kind(ABC, Generic[Raw, Schema]):
    """One kind of examples. `Raw`: the content of a file or folder, before it is checked and encoded."""

    @abstractmethod
    def read(self, path: Path, schema: Schema, mapping: Path | None) -> Raw:
        """Raises DataError."""

    @abstractmethod
    def examples(self, raw: Raw, schema: Schema) -> Examples:
        """Raises DataError."""

    @abstractmethod
    def profile(self, raw: Raw, spec: TaskSpec) -> Profile:
        """For the hospital's own screen."""

    @abstractmethod
    def in_use(self, path: Path, schema: Schema, use: Use) -> Used:
        """Examples for a finished model. Raises DataError, and RangeError unless `use.clamp`."""

    @abstractmethod
    def requested(self, rows: Sequence[Row], schema: Schema, refusal: Refusal, clamp: bool = False) -> Examples:
        """Rows from JSON to predict for, labelled 0. Raises DataError, RangeError unless `clamp`, or `refusal` for a
        value of another type.
        """


def kind_of(schema: DataSchema) -> Kind[Any, Any]:
    kind: Kind[Any, Any] = import_module(f"consilium_client.data.{KINDS[schema.kind]}.kind").KIND
    return kind


def read_examples(
    path: Path, schema: DataSchema, mapping: Path | None = None, *, allow_one_class: bool = True,
    on_source: Callable[[Source], None] = lambda source: None,
) -> Examples:  # fmt: skip
    """The examples in `path` (a file or a folder) by this schema. Held-out data needs several classes.

    `mapping`: a file that maps the data's columns to the schema's; ignored for data without columns, such as a folder.
    `on_source` gets what was read, before the examples are checked.
    Raises a DataError that names file, line and column, but never their content.
    """
    kind = kind_of(schema)
    raw = kind.read(path, schema, mapping)
    on_source(raw.source)
    examples = kind.examples(raw, schema)
    if not allow_one_class:
        require_classes(examples, path, schema)
    return examples
