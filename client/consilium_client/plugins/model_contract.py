"""The contract of a plug-in's model, as checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.model_specs import PluginSpec
from consilium_chain.tasks.task_spec import TaskSpec
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.models import Vector
from consilium_client.models.plugin import OfPlugin
from consilium_client.models.training import train
from consilium_client.plugins.findings import Checks, Findings, require
from consilium_client.programs import confined

ROWS: Final = 12
SEED: Final = 0
APART: Final = 1e-6  # logits of a row by itself and among others, relative to their size
_MANY: Final = 1_000_000  # parameters, from which on an update needs a codec


def suite(spec: PluginSpec, data: TableSchema | ImageSchema, findings: Findings) -> Checks:
    """Checks by name. Each returns a remark, or raises an error of `noted`, whose text says the fault."""
    first = OfPlugin(spec, data)

    def builds() -> str:
        findings.task = _task_of(spec, data, first.described())
        return findings.task.in_words.size

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
        classes, columns = len(task.data.classes), len(task.data.asked.columns)
        self._labels: Labels = generator.integers(0, classes, ROWS) if classes else np.ones((ROWS, columns))

    def checks(self) -> Checks:
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
        require(self._start.tobytes() == again.tobytes(), "two builds of one seed differ: draw by torch's generator")

    def _trains(self) -> str:
        losses: list[float] = []
        moved = self._trained(lambda done, steps, loss: losses.append(loss))
        require(bool(np.isfinite(losses).all()), f"the loss is {losses[0]}")
        require(bool((moved != self._start).any()), "no trained tensor has a gradient")
        return f"{losses[0]:.4f} nats"

    def _trains_again(self) -> None:
        first, second = self._trained(), self._trained()
        why = "two trainings differ: draw by torch's generator, and keep nothing from call to call"
        require(first.tobytes() == second.tobytes(), why)

    def _evaluates(self) -> None:
        first, second = self._logits(self._rows), self._logits(self._rows)
        require(first.tobytes() == second.tobytes(), "two evaluations differ: draw nothing in eval mode")

    def _evaluates_anew(self) -> None:
        before = self._logits(self._rows).tobytes(), self._model.initial(SEED).tobytes()
        confined.end(self._task.model, self._task.data)  # type: ignore[arg-type]  # a plug-in, as above
        after = self._logits(self._rows).tobytes(), self._model.initial(SEED).tobytes()
        require(
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
