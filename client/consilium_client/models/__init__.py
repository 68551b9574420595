"""The models that this installation runs, by family; a task names one and never brings its own.

Parameters travel as one float32 vector (p,), p = `ModelSpec.parameters(data)`: of each layer from the input on, its
weight (outputs first) row by row, then its bias. Of two classes a model has one logit, that of class 1; else one for
each class. docs/models.md says how to add a family.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from consilium_chain.tasks.model_specs import CnnSpec, LogisticSpec, MlpSpec
from consilium_chain.tasks.task_spec import TaskSpec
from numpy.typing import NDArray

from consilium_client.errors import ModelError

if TYPE_CHECKING:
    from torch import nn

    from consilium_client.data.examples import Examples

Vector = NDArray[np.float32]
Inputs = NDArray[np.float32] | NDArray[np.int64]  # one row an example


@dataclass(frozen=True)
class Evaluation:
    """What a model makes of n examples. `probabilities`: float64 (n, classes), each row's sum is 1. `activations`:
    float64 (n, width), what the last layer is given; the logits, where it is the only one."""

    probabilities: NDArray[np.float64] = field(repr=False)
    activations: NDArray[np.float64] = field(repr=False)


class Model(Protocol):
    """One family with a task's arguments. `input_shape`: of one example's row of inputs. `threads`: with how many torch
    computes. `rounding`: by how much a mean loss may differ between two machines, in millionths."""

    input_shape: tuple[int, ...]
    threads: int
    rounding: int

    def require_installed(self) -> None:
        """Raises ModelNotInstalled, EncoderAltered unless everything is here that the model computes with."""

    def initial(self, seed: int) -> Vector:
        """Starting parameters (p,), the same on every machine for the same seed (an integer ≥ 0)."""

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """What the model is given of examples; `sums` is round 0's, over all hospitals. Raises ShapeMismatch."""

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """Raises ShapeMismatch, UpdateNotFinite."""

    def module(self, parameters: Vector) -> nn.Module:
        """(batch of inputs) -> logits (n, outputs). Its trainable parameters, in their order, are a copy of
        `parameters`. Raises ShapeMismatch, UpdateNotFinite."""


def model_of(spec: TaskSpec) -> Model:
    """The task's model. A family's libraries are imported here, and not before."""
    model, data = spec.model, spec.data
    if isinstance(model, LogisticSpec | MlpSpec):
        from consilium_client.models.dense import Dense

        return Dense(model, data)
    if isinstance(model, CnnSpec):
        from consilium_client.models.cnn import Cnn

        return Cnn(model, data)
    from consilium_client.models.lora import Lora

    return Lora(model, data)


def require_inputs(model: Model, inputs: Inputs) -> None:
    """Raises ShapeMismatch."""
    if inputs.shape[1:] != model.input_shape:
        raise ModelError("ShapeMismatch", what="inputs", expected=("n", *model.input_shape), found=inputs.shape)


def require_parameters(expected: int, parameters: Vector) -> None:
    """Raises ShapeMismatch, UpdateNotFinite unless there are as many as expected, and all finite."""
    if parameters.shape != (expected,):
        raise ModelError("ShapeMismatch", what="parameters", expected=(expected,), found=parameters.shape)
    require_finite("parameters", parameters)


def require_finite(what: str, values: NDArray[np.float32] | NDArray[np.float64]) -> None:
    """Raises UpdateNotFinite unless every value is finite."""
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise ModelError("UpdateNotFinite", what=what, bad=bad, of=values.size)


def probabilities_of(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each class, float64 (n, classes), from logits (n, outputs). Raises UpdateNotFinite."""
    require_finite("predictions", logits)
    if logits.shape[1] == 1:  # class 0's is zero
        logits = np.hstack([np.zeros_like(logits), logits])
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return shares
