"""A small convolutional network on standardised images."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from consilium_chain.tasks.convolution_specs import KERNEL, CnnSpec
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from torch import nn

from consilium_client.data.examples import Examples
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import Standardiser
from consilium_client.models import Evaluation, Inputs, Model, Vector, he_normal
from consilium_client.models.objectives import objective_of
from consilium_client.models.torch_parameters import evaluated, load


class Convolutions(Model):
    """Layers one after another, the last one dense. `at_once`: the examples that are evaluated together."""

    at_once: ClassVar[int]

    @abstractmethod
    def module(self, parameters: Vector) -> nn.Sequential: ...

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """In double precision, as tables' models are."""
        self.require(parameters, inputs)
        module = self.module(parameters).double()
        body, last = module[:-1], module[-1]
        found = evaluated(lambda part: body(part.double()), last, inputs, self.at_once, self.threads)
        return self.evaluation(*found)


class Cnn(Convolutions):
    at_once = 256

    def __init__(self, spec: CnnSpec, data: DataSchema) -> None:
        self._spec, self._data = spec, of_kind(ImageSchema, data)
        self.parameters, self.objective = spec.parameters(data), objective_of(data)
        self.input_shape: tuple[int, ...] = (self._data.channels, self._data.height, self._data.width)

    def initial(self, seed: int) -> Vector:
        channels = [self._data.channels, *self._spec.channels]
        layers = [(a * KERNEL**2, b) for a, b in itertools.pairwise(channels)]
        return he_normal(seed, [*layers, (channels[-1], self._data.outputs)])

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Standardised by channel, float32 (n, channels, height, width)."""
        return Standardiser.from_sums(sums).transform_images(of_kind(ImageSet, examples))

    def module(self, parameters: Vector) -> nn.Sequential:
        self.require(parameters)
        layers: list[nn.Module] = []
        for a, b in itertools.pairwise([self._data.channels, *self._spec.channels]):
            layers += [nn.Conv2d(a, b, KERNEL, padding=KERNEL // 2), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(self._spec.channels[-1], self._data.outputs)]
        module = nn.Sequential(*layers)
        load(module, parameters)
        return module
