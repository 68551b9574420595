"""The contract of a plug-in, as a test suite: its author runs it before a hospital does.

All of it goes the way that a node goes: by the process that has neither keys nor data files nor a network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import tomli_w
from consilium_chain.tasks.data_schemas import ImageSchema, TableSchema
from consilium_chain.tasks.model_specs import PluginSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.typed_toml import validation_faults
from numpy.typing import NDArray
from pydantic import ValidationError
from safetensors.numpy import save_file

from consilium_client.errors import ModelError
from consilium_client.models import Vector
from consilium_client.models.plugin import OfPlugin
from consilium_client.models.training import train
from consilium_client.models.weights import named_tensors
from consilium_client.plugins.errors import PluginError
from consilium_client.plugins.installed import find, require_intact
from consilium_client.programs import confined

ROWS: Final = 12
SEED: Final = 0
APART: Final = 1e-6  # logits of a row by itself and among others, relative to their size
_UNKNOWN: Final = {"unknown": [1]}  # shapes, until the plug-in has told its own
_MANY: Final = 1_000_000  # parameters, from which on an update needs a codec


@dataclass(frozen=True)
class Check:
    """`why`: the reason of a failure, or what was found; empty if there is nothing to say."""

    name: str
    holds: bool
    why: str = ""


@dataclass
class Findings:
    """`task`: one with this plug-in, if it has come so far. `start`: the values that it draws, float32 (p,)."""

    checks: list[Check] = field(default_factory=list)
    task: TaskSpec | None = None
    start: Vector | None = None

    @property
    def holds(self) -> bool:
        return all(one.holds for one in self.checks)

    @property
    def section(self) -> str:
        """[model] of a task file. Raises ValueError unless the plug-in could be built."""
        model = self._task.model.model_dump(exclude={"shapes"}, exclude_defaults=True)
        shapes = [f"{json.dumps(name)} = {list(shape)}\n" for name, shape in self._shapes.items()]  # a line each
        return tomli_w.dumps({"model": model}) + "\n[model.shapes]\n" + "".join(shapes)

    def write_start(self, path: Path) -> None:
        """The start as a safetensors file. Raises ValueError unless the plug-in could be built, OSError."""
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


def examine(
    distribution: str, data: TableSchema | ImageSchema, arguments: Mapping[str, Any], entry: str | None = None
) -> Findings:
    """Tries an installed plug-in on drawn rows. `entry`: which of its models; needed if it has several.

    Raises PluginError (PluginMissing, PluginMalformed), ValueError for arguments that no task file can have.
    """
    found, findings = find(distribution), Findings()
    if not found.entries:
        raise PluginError("PluginMalformed", plugin=found.in_words, why="it has no entry point in consilium.models")
    if entry not in found.entries and (entry is not None or len(found.entries) > 1):
        why = f"name one of its models by --entry: {', '.join(found.entries)}"
        raise PluginError("PluginMalformed", plugin=found.in_words, why=why)
    record = found.record
    spec = PluginSpec.model_validate({
        "name": "plugin", "distribution": record.distribution, "version": record.version, "record": record.digest,
        "entry": entry or next(iter(found.entries)), "arguments": dict(arguments), "shapes": _UNKNOWN,
    })  # fmt: skip
    for name, check in _suite(spec, data, findings, lambda: require_intact(found)):
        with _noted(findings, name) as tell:
            tell(check() or "")
        if not findings.holds:
            break  # what follows needs it
    return findings


Tell = Callable[[str], None]


@contextmanager
def _noted(findings: Findings, name: str) -> Iterator[Tell]:
    """Notes a check that holds with what is told within, or one that fails with its error."""
    told: list[str] = []
    try:
        yield told.append
    except ModelError as error:
        findings.checks.append(Check(name, False, f"{error.name}: {error}"))
    except ValidationError as error:
        findings.checks.append(Check(name, False, validation_faults(error)))
    except AssertionError as error:
        findings.checks.append(Check(name, False, f"{error}"))
    else:
        findings.checks.append(Check(name, True, told[0] if told else ""))


def _suite(
    spec: PluginSpec, data: TableSchema | ImageSchema, findings: Findings, intact: Callable[[], None]
) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Checks by name. Each returns a remark, or raises ModelError or AssertionError, whose text says the fault."""
    yield "its files are those of its RECORD", intact
    first = OfPlugin(spec, data)

    def builds() -> str:
        findings.task = _task_of(spec, data, first.described())
        return findings.task.size_in_words

    yield "it is built without files, keys and network, and fits a task", builds
    if findings.task is None:
        return
    yield from _Trial(findings.task, findings).checks()


class _Trial:
    """A plug-in that could be built, on drawn rows."""

    def __init__(self, task: TaskSpec, findings: Findings) -> None:
        self._task, self._findings = task, findings
        self._model = _model_of(task)
        generator = np.random.default_rng(SEED)
        self._rows = generator.standard_normal((ROWS, *self._model.input_shape)).astype(np.float32)
        self._labels = generator.integers(0, len(task.data.classes), ROWS)

    def checks(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        yield "a seed draws one start", self._starts
        yield "a step of training has a finite loss", self._trains
        yield "a seed trains to the same bits", self._trains_again
        yield "evaluation in double precision gives the same bits", self._evaluates
        yield "another process gives the same bits", self._evaluates_anew
        yield "rows beside a row", self._rows_apart

    @property
    def _start(self) -> Vector:
        if self._findings.start is None:
            raise ValueError("no start was drawn")
        return self._findings.start

    def _starts(self) -> None:
        self._findings.start = self._model.initial(SEED)
        again = self._model.initial(SEED)
        _require(self._start.tobytes() == again.tobytes(), "two builds of one seed differ: draw by torch's generator")

    def _trains(self) -> str:
        losses: list[float] = []
        moved = self._trained(lambda done, steps, loss: losses.append(loss))
        _require(bool(np.isfinite(losses).all()), f"the loss is {losses[0]}")
        _require(bool((moved != self._start).any()), "no trained tensor has a gradient")
        return f"{losses[0]:.4f} nats"

    def _trains_again(self) -> None:
        first, second = self._trained(), self._trained()
        why = "two trainings differ: draw by torch's generator, and keep nothing from call to call"
        _require(first.tobytes() == second.tobytes(), why)

    def _evaluates(self) -> None:
        first, second = self._logits(self._rows), self._logits(self._rows)
        _require(first.tobytes() == second.tobytes(), "two evaluations differ: draw nothing in eval mode")

    def _evaluates_anew(self) -> None:
        before = self._logits(self._rows).tobytes(), self._model.initial(SEED).tobytes()
        confined.end(self._task.model, self._task.data)  # type: ignore[arg-type]  # a plug-in, as above
        after = self._logits(self._rows).tobytes(), self._model.initial(SEED).tobytes()
        _require(
            before == after,
            "hospitals would compute different models: it depends on more than its arguments and the seed",
        )

    def _rows_apart(self) -> str:
        together = self._logits(self._rows[:3])
        alone = np.concatenate([self._logits(self._rows[at : at + 1]) for at in range(3)])
        apart = np.allclose(together, alone, rtol=0, atol=APART * float(np.abs(together).max()))
        return "do not change its result" if apart else "change its result: voters' batches count in their scores"

    def _logits(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        return self._model.evaluate(self._start, rows).activations

    def _trained(self, progress: confined.Progress = lambda done, steps, loss: None) -> Vector:
        return train(self._task, self._start, self._rows, self._labels, SEED, progress)


def _model_of(task: TaskSpec) -> OfPlugin:
    if not isinstance(task.model, PluginSpec) or isinstance(task.data, TableSchema | ImageSchema) is False:
        raise ValueError("no plug-in")
    return OfPlugin(task.model, task.data)  # type: ignore[arg-type]  # no texts, as above


def _task_of(spec: PluginSpec, data: TableSchema | ImageSchema, described: Mapping[str, Any]) -> TaskSpec:
    """Raises ValidationError if no task can have such tensors."""
    model = PluginSpec.model_validate(spec.model_dump() | {name: described.get(name) for name in ("shapes", "moving")})
    is_long = model.parameters(data) > _MANY and not model.moving
    return TaskSpec.model_validate({
        "name": "the contract of a plug-in", "data": data.model_dump(), "model": model.model_dump(),
        "start": {"name": "file", "parts": ["00" * 32]}, "training": {"steps": 1, "batch_size": ROWS},
        "update": {"codec": {"name": "hash", "buckets": _MANY // 10}} if is_long else {},
    })  # fmt: skip


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise AssertionError(why)
