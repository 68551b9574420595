"""The kinds of examples: tables, texts, images and series.

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

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import Examples, Refusal, Row, Source
from consilium_client.data.profile import Profile
from consilium_client.data.use import Use, Used
from consilium_client.errors import DataError

# A schema's kind: its folder here, imported when needed.
KINDS = {"table": "table", "text": "text", "corpus": "text", "images": "image", "series": "series"}

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
    """The examples in `path` (a file or a folder) by this schema. Held-out data needs several answers.

    `mapping`: a file that maps the data's columns to the schema's; ignored for data without columns, such as a folder.
    `on_source` gets what was read, before the examples are checked.
    Raises a DataError that names file, line and column, but never their content.
    """
    kind = kind_of(schema)
    raw = kind.read(path, schema, mapping)
    on_source(raw.source)
    examples = kind.examples(raw, schema)
    if not allow_one_class:
        require_several(examples, path, schema)
    return examples


def read_held_out(path: Path, spec: TaskSpec, mapping: Path | None = None) -> Examples:
    """A voter's examples for a task: `read_examples` with what `require_held_out` asks for. Raises DataError."""
    examples = read_examples(path, spec.data, mapping)
    require_held_out(examples, path, spec)
    return examples


def require_several(examples: Examples, path: Path, schema: DataSchema) -> None:
    """Raises DataError (OneClassOnly) if all rows have one answer."""
    if answers_of(schema).alike(examples.labels):
        raise DataError("OneClassOnly", path=path, label=" and ".join(schema.asked.columns))


def require_held_out(examples: Examples, path: Path, spec: TaskSpec) -> None:
    """Raises DataError (OneClassOnly; TooFewHeldOut for fewer rows than the task asks of a voter, or of one class)."""
    require_several(examples, path, spec.data)
    judging = spec.judging
    if examples.rows < (judging.least_rows or 0):
        raise DataError(
            "TooFewHeldOut", path=path, found=examples.rows, what=spec.data.things, at_least=judging.least_rows
        )
    if judging.least_of_class:
        rarest, found = min(answers_of(spec.data).counts(examples.labels), key=lambda one: one[1])
        if found < judging.least_of_class:
            what = f"{spec.data.things} of {'class ' if spec.data.classes else ''}{rarest}"
            raise DataError("TooFewHeldOut", path=path, found=found, what=what, at_least=judging.least_of_class)
