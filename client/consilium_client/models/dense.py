"""Logistic regression and multilayer perceptron, on a table's standardised columns."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.model_specs import LogisticSpec, MlpSpec, dense_parameters, widths
from consilium_core.kinds import of_kind
from numpy.typing import NDArray

from consilium_client.data.examples import Examples
from consilium_client.data.standardise import Standardiser
from consilium_client.data.table.reader import Table
from consilium_client.models import (
    Evaluation,
    Inputs,
    Model,
    Vector,
    probabilities_of,
    require_inputs,
    require_parameters,
)

if TYPE_CHECKING:
    from torch import nn


class Dense(Model):
    def __init__(self, spec: LogisticSpec | MlpSpec, data: DataSchema) -> None:
        self._widths = widths(spec, data)
        self.input_shape: tuple[int, ...] = (self._widths[0],)

    def initial(self, seed: int) -> Vector:
        """One layer starts at zero; of more, weights have deviation sqrt(2 / inputs) (He) and biases are zero.

        By numpy's PCG64: torch's own generator is one per process, and whoever else draws from it would move the start.
        """
        if len(self._widths) == 2:
            return np.zeros(dense_parameters(self._widths), dtype=np.float32)
        generator = np.random.Generator(np.random.PCG64(seed))
        parts = []
        for inputs, outputs in itertools.pairwise(self._widths):
            parts.append(generator.standard_normal(inputs * outputs) * np.sqrt(2.0 / inputs))
            parts.append(np.zeros(outputs))
        return np.concatenate(parts).astype(np.float32)

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Standardised columns, float32 (n, columns)."""
        return Standardiser.from_sums(sums).transform(of_kind(Table, examples))

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """Computed in double precision, so that two voters' machines agree far below a millionth, and by numpy, so that
        a voter's node needs no torch."""
        require_inputs(self, inputs)
        values = inputs.astype(np.float64)
        *hidden, last = self._layers(parameters)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            for layer in hidden:
                values = np.maximum(_through(layer, values), 0.0)
            logits = _through(last, values)
        return Evaluation(probabilities_of(logits), values if hidden else logits)

    def module(self, parameters: Vector) -> nn.Module:
        from torch import nn

        from consilium_client.models.torch_parameters import load

        require_parameters(dense_parameters(self._widths), parameters)
        modules: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(self._widths):
            modules += [nn.Linear(inputs, outputs), nn.ReLU()]
        module = nn.Sequential(*modules[:-1])
        load(module, parameters)
        return module

    def _layers(self, parameters: Vector) -> list[tuple[Vector, Vector]]:
        """Each layer's weight (outputs, inputs) and bias (outputs,), as views."""
        require_parameters(dense_parameters(self._widths), parameters)
        layers, position = [], 0
        for inputs, outputs in itertools.pairwise(self._widths):
            middle, end = position + inputs * outputs, position + (inputs + 1) * outputs
            layers.append((parameters[position:middle].reshape(outputs, inputs), parameters[middle:end]))
            position = end
        return layers


def _through(layer: tuple[Vector, Vector], values: NDArray[np.float64]) -> NDArray[np.float64]:
    weight, bias = layer
    return np.asarray(values @ weight.T.astype(np.float64) + bias.astype(np.float64))
