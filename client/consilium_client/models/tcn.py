"""A small temporal convolutional network on the steps of a series."""

from __future__ import annotations

import itertools

import numpy as np
from consilium_chain.tasks.convolution_specs import KERNEL, TcnSpec
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from torch import nn

from consilium_client.data.examples import Examples
from consilium_client.data.series.stays import Stays
from consilium_client.data.standardise import Standardiser
from consilium_client.models import Inputs, Vector, he_normal
from consilium_client.models.cnn import Convolutions
from consilium_client.models.objectives import objective_of
from consilium_client.models.torch_parameters import load


class Tcn(Convolutions):
    at_once = 1_024

    def __init__(self, spec: TcnSpec, data: DataSchema) -> None:
        series = of_kind(SeriesSchema, data)
        self._channels, self._outputs = [series.channels, *spec.channels], data.outputs
        self.parameters, self.objective = spec.parameters(data), objective_of(data)
        self.input_shape: tuple[int, ...] = (series.channels, series.steps)

    def initial(self, seed: int) -> Vector:
        layers = [(a * KERNEL, b) for a, b in itertools.pairwise(self._channels)]
        return he_normal(seed, [*layers, (self._channels[-1], self._outputs)])

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """float32 (n, 2 · variables, steps), as `Standardiser.transform_stays` gives them."""
        return Standardiser.from_sums(sums).transform_stays(of_kind(Stays, examples))

    def module(self, parameters: Vector) -> nn.Sequential:
        self.require(parameters)
        layers: list[nn.Module] = []
        for block, (a, b) in enumerate(itertools.pairwise(self._channels)):
            apart = 2**block  # as many steps as blocks before reach on each side, and one more
            layers += [nn.Conv1d(a, b, KERNEL, padding=apart * (KERNEL // 2), dilation=apart), nn.ReLU()]
        layers += [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(self._channels[-1], self._outputs)]
        module = nn.Sequential(*layers)
        load(module, parameters)
        return module
