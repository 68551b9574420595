"""Plug-ins that a task, or a hospital's mapping, names: installed wheels, by the digest of their RECORD."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal

from consilium_core.typed_toml import Section
from pydantic import Field

from consilium_chain.tasks.start_specs import Digest

Group = Literal["models", "metrics", "readers"]
Plain = bool | int | float | Annotated[str, Field(max_length=1_000)]


class NamedPlugin(Section):
    """The part that all groups share. `group`: of its entry point, consilium.GROUP."""

    group: ClassVar[Group]

    distribution: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=100)] = Field(
        description="the installed distribution's name, in lower case and with hyphens"
    )
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z.!+_-]{1,64}$")] = Field(description="its version")
    entry: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = Field(
        description="the name of its entry point"
    )
    record: Digest = Field(description="digest of its RECORD, as `consilium plugin list` prints it")
    arguments: Annotated[
        dict[Annotated[str, Field(max_length=64)], Plain | Annotated[list[Plain], Field(max_length=64)]],
        Field(max_length=32),
    ] = Field(
        default={},
        description="at most 32, given to the entry point: numbers, texts, true or false, and lists of these",
    )

    @property
    def thing(self) -> str:
        """Its group's, in a word."""
        return self.group.removesuffix("s")

    @property
    def in_words(self) -> str:
        return f"{self.distribution} {self.version}"


class MetricPlugin(NamedPlugin):
    """A metric whose code voters have installed themselves, as a wheel."""

    group = "metrics"


class ReaderPlugin(NamedPlugin):
    """A reader of files in a format of their own, whose code the data's owner has installed, as a wheel."""

    group = "readers"


def require_metric(metric: str, plugin: MetricPlugin | None, known: Collection[str]) -> None:
    """`known`: the question's metrics. Raises ValueError."""
    if (metric == "plugin") != (plugin is not None):
        raise ValueError(
            'metric = "plugin" and the section [judging.plugin] go together: add the other, or remove both'
        )
    if plugin is None and metric not in known:
        raise ValueError(f"{metric} has no meaning for this data's question: judge by {' or '.join(known)}")
