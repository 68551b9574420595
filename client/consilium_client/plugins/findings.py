"""Results of a plug-in's test suite."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import tomli_w
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.typed_toml import validation_faults
from pydantic import ValidationError
from safetensors.numpy import save_file

from consilium_client.errors import DataError, ModelError
from consilium_client.models import Vector
from consilium_client.models.weights import named_tensors


@dataclass(frozen=True)
class Check:
    """`why`: the reason of a failure, or what was found; empty if there is nothing to say."""

    name: str
    holds: bool
    why: str = ""


@dataclass
class Findings:
    """`task`: one with this model, if it has come so far. `start`: the values that it draws, float32 (p,). `named`: of
    a metric or reader, its section. `notes`: of a reader's data, to look at.
    """

    checks: list[Check] = field(default_factory=list)
    task: TaskSpec | None = None
    start: Vector | None = None
    named: str = ""
    notes: list[str] = field(default_factory=list, repr=False)

    @property
    def holds(self) -> bool:
        return all(one.holds for one in self.checks)

    @property
    def section(self) -> str:
        """[model] or [judging.plugin] of a task file, or [reader] of a mapping. Raises ValueError unless the model
        could be built.
        """
        if self.named:
            return self.named
        model = {"name": "plugin"} | self._task.model.model_dump(exclude={"shapes"}, exclude_defaults=True)
        shapes = [f"{json.dumps(name)} = {list(shape)}\n" for name, shape in self._shapes.items()]  # a line each
        return tomli_w.dumps({"model": model}) + "\n[model.shapes]\n" + "".join(shapes)

    def write_start(self, path: Path) -> None:
        """The start as a safetensors file. Raises ValueError unless a model could be built, OSError."""
        if self.start is None:
            raise ValueError("the plug-in has drawn no start")
        save_file(named_tensors(self._task, self.start), path)

    @property
    def _task(self) -> TaskSpec:
        if self.task is None:
            raise ValueError("the plug-in was not built")
        return self.task

    @property
    def _shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self._task.model.tensors(self._task.data)


Checks = Iterator[tuple[str, Callable[[], str | None]]]


@contextmanager
def noted(findings: Findings, name: str) -> Iterator[Callable[[str], None]]:
    """Notes a check that holds with what is told within, or one that fails with its error."""
    told: list[str] = []
    try:
        yield told.append
    except (ModelError, DataError) as error:
        findings.checks.append(Check(name, False, f"{error.name}: {error}"))
    except ValidationError as error:
        findings.checks.append(Check(name, False, validation_faults(error)))
    except AssertionError as error:
        findings.checks.append(Check(name, False, f"{error}"))
    else:
        findings.checks.append(Check(name, True, told[0] if told else ""))


def require(holds: bool, why: str) -> None:
    """Raises AssertionError."""
    if not holds:
        raise AssertionError(why)
