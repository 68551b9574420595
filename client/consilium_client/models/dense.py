"""Logistic regression and multilayer perceptron, on a table's standardised columns, or on all steps of a series."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.model_specs import LogisticSpec, MlpSpec, widths
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.examples import Examples
from consilium_client.data.series.stays import Stays
from consilium_client.data.standardise import Standardiser
from consilium_client.data.table.reader import Table
from consilium_client.models import Evaluation, Inputs, Model, Vector, he_normal
from consilium_client.models.objectives import objective_of
from consilium_client.models.objectives.base import Differentiable

if TYPE_CHECKING:
    from torch import nn


class Dense(Model):
    def __init__(self, spec: LogisticSpec | MlpSpec, data: DataSchema) -> None:
        self._widths = widths(spec, data)
        self.parameters, self.objective = spec.parameters(data), objective_of(data)
        self.input_shape: tuple[int, ...] = (self._widths[0],)

    def initial(self, seed: int) -> Vector:
        """A single layer starts at zero."""
        if len(self._widths) == 2:
            return np.zeros(self.parameters, dtype=np.float32)
        return he_normal(seed, itertools.pairwise(self._widths))

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Standardised columns, float32 (n, columns)."""
        standardiser = Standardiser.from_sums(sums)
        if isinstance(examples, Stays):
            return standardiser.transform_stays(examples).reshape(examples.rows, -1)
        return standardiser.transform(of_kind(Table, examples))

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """In double precision, so that two voters' machines agree far below a millionth; by numpy, so that a voter's
        node needs no torch.
        """
        self.require(parameters, inputs)
        values = inputs.astype(np.float64)
        *hidden, last = self._layers(parameters)
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is refused below
            for layer in hidden:
                values = np.maximum(_through(layer, values), 0.0)
            logits = _through(last, values)
        return self.evaluation(logits, values if hidden else logits)

    def gradient(
        self, parameters: Vector, inputs: Inputs, targets: NDArray[Any], class_weights: Vector | None = None
    ) -> tuple[float, Vector]:
        """The mean loss of rows, and its gradient float32 (p,), by numpy in single precision. `targets`: of `targets`.

        By backpropagation (Rumelhart, Hinton and Williams, 1986); a ReLU has no slope at zero, as in torch.
        """
        layers, activations = self._layers(parameters), [np.asarray(inputs, np.float32)]
        for weight, bias in layers[:-1]:
            activations.append(np.maximum(activations[-1] @ weight.T + bias, np.float32(0)))
        weight, bias = layers[-1]
        objective = of_kind(Differentiable, self.objective)  # type: ignore[type-abstract]  # any of them
        loss, slope = objective.gradient(activations[-1] @ weight.T + bias, targets, class_weights)
        found: Vector = np.empty(self.parameters, np.float32)
        backwards = zip(layers, activations, self._layers(found), strict=True)
        for (weight, _), below, (of_weight, of_bias) in reversed(list(backwards)):
            np.matmul(slope.T, below, out=of_weight)
            slope.sum(axis=0, out=of_bias)
            if below is not activations[0]:
                slope = (slope @ weight) * (below > 0)
        return loss, found

    def module(self, parameters: Vector) -> nn.Module:
        from torch import nn

        from consilium_client.models.torch_parameters import load

        self.require(parameters)
        modules: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(self._widths):
            modules += [nn.Linear(inputs, outputs), nn.ReLU()]
        module = nn.Sequential(*modules[:-1])
        load(module, parameters)
        return module

    def _layers(self, parameters: Vector) -> list[tuple[Vector, Vector]]:
        """Each layer's weight (outputs, inputs) and bias (outputs,), as views."""
        layers, position = [], 0
        for inputs, outputs in itertools.pairwise(self._widths):
            middle, end = position + inputs * outputs, position + (inputs + 1) * outputs
            layers.append((parameters[position:middle].reshape(outputs, inputs), parameters[middle:end]))
            position = end
        return layers


def _through(layer: tuple[Vector, Vector], values: NDArray[np.float64]) -> NDArray[np.float64]:
    weight, bias = layer
    return np.asarray(values @ weight.T.astype(np.float64) + bias.astype(np.float64))
