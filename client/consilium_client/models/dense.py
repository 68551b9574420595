"""Logistic regression and multilayer perceptron, on a table's standardised columns, or on all steps of a series."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.model_specs import LogisticSpec, MlpSpec, dense_parameters, widths
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.examples import Examples
from consilium_client.data.series.stays import Stays
from consilium_client.data.standardise import Standardiser
from consilium_client.data.table.reader import Table
from consilium_client.models import Evaluation, Inputs, Model, Vector, he_normal
from consilium_client.models.objectives import objective_of

if TYPE_CHECKING:
    from torch import nn


class Dense(Model):
    def __init__(self, spec: LogisticSpec | MlpSpec, data: DataSchema) -> None:
        self._widths = widths(spec, data)
        self.parameters, self.objective = dense_parameters(self._widths), objective_of(data)
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
