"""A small convolutional network on standardised images."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from consilium_chain.tasks.data_schemas import DataSchema, ImageSchema
from consilium_chain.tasks.model_specs import KERNEL, CnnSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from torch import nn

from consilium_client.data.examples import Examples
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import Standardiser
from consilium_client.models import (
    Evaluation,
    Inputs,
    Model,
    Vector,
    probabilities_of,
    require_inputs,
    require_parameters,
)
from consilium_client.models.torch_parameters import load

EVALUATED_AT_ONCE = 256  # images


class Cnn(Model):
    def __init__(self, spec: CnnSpec, data: DataSchema) -> None:
        self._spec, self._data = spec, of_kind(ImageSchema, data)
        self._parameters = spec.parameters(data)
        self.input_shape: tuple[int, ...] = (self._data.channels, self._data.height, self._data.width)

    def initial(self, seed: int) -> Vector:
        """Weights of deviation sqrt(2 / inputs) (He), zero biases, by numpy's PCG64."""
        generator = np.random.Generator(np.random.PCG64(seed))
        parts = []
        for a, b in itertools.pairwise([self._data.channels, *self._spec.channels]):
            parts.append(generator.standard_normal(b * a * KERNEL**2) * np.sqrt(2.0 / (a * KERNEL**2)))
            parts.append(np.zeros(b))
        last = self._spec.channels[-1]
        parts.append(generator.standard_normal(last * self._data.outputs) * np.sqrt(2.0 / last))
        parts.append(np.zeros(self._data.outputs))
        return np.concatenate(parts).astype(np.float32)

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Standardised by channel, float32 (n, channels, height, width)."""
        return Standardiser.from_sums(sums).transform_images(of_kind(ImageSet, examples))

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """In double precision, as tables' models are."""
        require_inputs(self, inputs)
        module = self.module(parameters).double()
        body, last = module[:-1], module[-1]
        torch.set_num_threads(self.threads)
        with torch.no_grad():
            parts = [
                body(torch.from_numpy(inputs[start : start + EVALUATED_AT_ONCE]).double())
                for start in range(0, len(inputs), EVALUATED_AT_ONCE)
            ]
            activations = torch.cat(parts)
            logits = last(activations)
        return Evaluation(probabilities_of(logits.numpy()), activations.numpy())

    def module(self, parameters: Vector) -> nn.Sequential:
        require_parameters(self._parameters, parameters)
        layers: list[nn.Module] = []
        for a, b in itertools.pairwise([self._data.channels, *self._spec.channels]):
            layers += [nn.Conv2d(a, b, KERNEL, padding=KERNEL // 2), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(self._spec.channels[-1], self._data.outputs)]
        module = nn.Sequential(*layers)
        load(module, parameters)
        return module
