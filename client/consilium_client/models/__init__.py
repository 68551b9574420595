"""The models that this installation runs, by family. A task names one, and never brings its own.

Parameters travel as one float32 vector (p,), p = `ModelSpec.parameters(data)`: for each layer from the input on, its
weight (outputs first) row by row, then its bias. A model has the outputs that its task's question asks for, and the
question's objective makes predictions of them. docs/models.md explains how to add a family.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from consilium_chain.tasks.start_specs import SeedStart
from consilium_chain.tasks.task_spec import TaskSpec
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.errors import ModelError
from consilium_client.models.objectives.base import Objective, Predictions, Reduction

if TYPE_CHECKING:
    import torch
    from torch import nn

    from consilium_client.data.examples import Examples

Vector = NDArray[np.float32]
_DRAWN = 1 << 20  # values drawn at a time
Inputs = NDArray[np.float32] | NDArray[np.int64]  # one row an example


def digest_of(values: NDArray[np.float32] | NDArray[np.float64]) -> bytes:
    """SHA-256 of the values' bytes, little-endian and in order: 32 bytes. Two parties compare a model by it."""
    return hashlib.sha256(values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()).digest()


@dataclass(frozen=True)
class Evaluation:
    """A model's results on n examples. `predictions`: float64 (n, …), as the task's objective says. `activations`:
    float64 (n, width), the last layer's inputs; its outputs, if it is the only layer.

    Of a segmentation, predictions are float32, and activations the pixels' means.

    Of a language model, predictions are float64 (m, 2), of the examples' m tokens. `rows`: the example of each token,
    int64 (m,).
    """

    predictions: Predictions = field(repr=False)
    activations: NDArray[np.float64] = field(repr=False)
    rows: NDArray[np.int64] | None = field(default=None, repr=False)

    def answers(self, labels: Labels) -> tuple[Labels, Predictions]:
        """Labels (m, …) and predictions (m, …) to measure. `labels`: of the examples (n, …)."""
        return (labels if self.rows is None else np.zeros(len(self.rows), np.int64)), self.predictions


class Model(ABC):
    """One family with a task's arguments. `parameters`: their number, p. `input_shape`: of one example's row of inputs.
    `objective`: of the task's question.
    `threads`: torch's number of threads; small models only lose to threads, and one thread adds in one order.
    `rounding`: the largest difference of a mean loss between two machines, in millionths. `window`: seconds in which a
    committee evaluates it."""

    parameters: int
    input_shape: tuple[int, ...]
    objective: Objective
    threads = 1
    rounding = 1
    window = 60

    def require_installed(self) -> None:
        """Raises ModelError (ModelNotInstalled, EncoderAltered) unless the model can run here."""
        return  # most families need nothing more

    def require_apart(self) -> None:
        """Raises ProgramError (RowsMixed) if one row's result depends on others: then no row's gradient is its own."""
        return  # no family here mixes rows

    @abstractmethod
    def initial(self, seed: int) -> Vector:
        """Starting parameters (p,), the same on every machine for the same seed (an integer ≥ 0)."""

    @abstractmethod
    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """The model's inputs from examples; `sums` is round 0's, over all hospitals. Raises ShapeMismatch."""

    @abstractmethod
    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """Raises ShapeMismatch, UpdateNotFinite."""

    @abstractmethod
    def module(self, parameters: Vector) -> nn.Module:
        """(batch of inputs) -> outputs (n, outputs). Its trainable parameters, in their order, are a copy of
        `parameters`. Raises ShapeMismatch, UpdateNotFinite."""

    def evaluation(self, outputs: NDArray[np.float64], activations: NDArray[np.float64]) -> Evaluation:
        """From a module's outputs (n, outputs). Raises UpdateNotFinite."""
        require_finite("predictions", outputs)
        return Evaluation(self.objective.predictions(outputs), activations)

    def targets(self, inputs: Inputs, labels: Labels) -> NDArray[Any]:
        """The answers that training asks of the rows, (n, …)."""
        return self.objective.targets(labels)

    def require(self, parameters: Vector, inputs: Inputs | None = None) -> None:
        """Raises ShapeMismatch, and UpdateNotFinite unless all parameters are finite."""
        if parameters.shape != (self.parameters,):
            raise ModelError("ShapeMismatch", what="parameters", expected=(self.parameters,), found=parameters.shape)
        require_finite("parameters", parameters)
        if inputs is not None and inputs.shape[1:] != self.input_shape:
            raise ModelError("ShapeMismatch", what="inputs", expected=("n", *self.input_shape), found=inputs.shape)

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, reduction: Reduction,
        class_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """The objective's, of outputs (n, outputs)."""
        return self.objective.loss(outputs, targets, reduction, class_weights)


FAMILIES: Mapping[str, tuple[str, str]] = {  # by the name in tasks: module in this package, and class
    "logistic": ("dense", "Dense"),
    "mlp": ("dense", "Dense"),
    "cnn": ("cnn", "Cnn"),
    "tcn": ("tcn", "Tcn"),
    "unet": ("unet", "Unet"),
    "lora": ("lora", "Lora"),
    "encoder": ("lora", "WholeEncoder"),
    "program": ("program", "OfProgram"),
    "plugin": ("plugin", "OfPlugin"),
}


def model_of(spec: TaskSpec) -> Model:
    """The task's model. It imports the family's libraries only now."""
    module, name = FAMILIES[spec.model.name]
    model: Model = getattr(import_module(f"consilium_client.models.{module}"), name)(spec.model, spec.data)
    model.window = spec.windows.score
    return model


def start_of(spec: TaskSpec, seed: int, counted: Vector | None = None) -> Vector:
    """The start of a task that starts from a seed, (p,): `Model.initial`, with the last biases from the public
    prevalence, if the task states one. Without evidence each class is then as likely as that. `counted`: the last
    biases (outputs,) by round 0's counts, in a task that asks for them.
    """
    found = model_of(spec).initial(seed)
    if counted is not None:
        found[-len(counted) :] = counted
    elif isinstance(spec.start, SeedStart) and spec.start.prevalence is not None:
        logs = np.log(np.array(spec.start.prevalence, dtype=np.float64))
        outputs = spec.data.outputs
        found[-outputs:] = logs[1] - logs[0] if outputs == 1 else logs - logs.mean()
    return found


def he_normal(seed: int, layers: Iterable[tuple[int, int]]) -> Vector:
    """Each layer's weights of deviation sqrt(2 / inputs) (He), then its zero biases. Layers are (inputs, outputs).

    By numpy's PCG64: torch's own generator is one per process, and other draws from it would move the start.
    """
    generator, layers = np.random.Generator(np.random.PCG64(seed)), list(layers)
    found, offset = np.zeros(sum((inputs + 1) * outputs for inputs, outputs in layers), dtype=np.float32), 0
    for inputs, outputs in layers:
        end = offset + inputs * outputs
        for start in range(offset, end, _DRAWN):  # a part at a time: doubles of a whole layer would take thrice as much
            part = generator.standard_normal(min(_DRAWN, end - start)) * np.sqrt(2.0 / inputs)
            found[start : start + len(part)] = part
        offset = end + outputs
    return found


def require_finite(what: str, values: NDArray[np.float32] | NDArray[np.float64]) -> None:
    """Raises UpdateNotFinite unless every value is finite."""
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise ModelError("UpdateNotFinite", what=what, bad=bad, of=values.size)
