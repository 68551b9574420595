"""A small U-Net on standardised images: logits (n, classes, height, width)."""

from __future__ import annotations

import numpy as np
import torch
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.model_specs import KERNEL, UnetSpec
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import interpolate, max_pool2d

from consilium_client.data.examples import Examples
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import Standardiser
from consilium_client.models import Evaluation, Inputs, Model, Vector, he_normal, require_finite
from consilium_client.models.objectives import objective_of
from consilium_client.models.torch_parameters import load

EVALUATED_AT_ONCE = 1 << 17  # pixels


class _Levels(nn.Module):
    """The layers, with the names of `UnetSpec.convolutions`."""

    def __init__(self, spec: UnetSpec, data: ImageSchema) -> None:
        super().__init__()
        *pairs, (_, inputs, outputs, side) = spec.convolutions(data)
        blocks = [_block(first[1], second[2]) for first, second in zip(pairs[::2], pairs[1::2], strict=True)]
        levels = len(spec.widths)
        self.down, self.up = nn.ModuleList(blocks[:levels]), nn.ModuleList(blocks[levels:])
        self.last = nn.Conv2d(inputs, outputs, side)

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """The last layer's inputs, (n, widths[0], height, width)."""
        kept, found = list[torch.Tensor](), images
        for at, block in enumerate(self.down):
            found = block(found if at == 0 else max_pool2d(found, 2))
            kept.append(found)
        for block, own in zip(self.up, reversed(kept[:-1]), strict=True):
            found = block(torch.cat([own, interpolate(found, scale_factor=2.0)], dim=1))
        return found

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.features(images))
        return logits


def _block(inputs: int, outputs: int) -> nn.Sequential:
    first, second = (nn.Conv2d(wide, outputs, KERNEL, padding=KERNEL // 2) for wide in (inputs, outputs))
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())


class Unet(Model):
    def __init__(self, spec: UnetSpec, data: DataSchema) -> None:
        self._spec, self._data = spec, of_kind(ImageSchema, data)
        self.parameters, self.objective = spec.parameters(data), objective_of(data)
        self.input_shape: tuple[int, ...] = (self._data.channels, self._data.height, self._data.width)

    def initial(self, seed: int) -> Vector:
        return he_normal(seed, [(a * side**2, b) for _, a, b, side in self._spec.convolutions(self._data)])

    def inputs(self, examples: Examples, sums: NDArray[np.float64]) -> Inputs:
        """Standardised by channel, float32 (n, channels, height, width)."""
        return Standardiser.from_sums(sums).transform_images(of_kind(ImageSet, examples))

    def evaluate(self, parameters: Vector, inputs: Inputs) -> Evaluation:
        """In double precision, as other families are. Activations are the means of each channel before the last layer,
        float64 (n, widths[0]).
        """
        self.require(parameters, inputs)
        module = self.module(parameters).double()
        torch.set_num_threads(self.threads)
        chances, activations = [], []
        with torch.no_grad():
            for part in torch.split(torch.from_numpy(inputs), max(1, EVALUATED_AT_ONCE // inputs[0, 0].size)):
                features = module.features(part.double())
                outputs = module.last(features).numpy()
                require_finite("predictions", outputs)
                chances.append(self.objective.predictions(outputs))
                activations.append(features.mean(dim=(2, 3)).numpy())
        return Evaluation(np.concatenate(chances), np.concatenate(activations))

    def module(self, parameters: Vector) -> _Levels:
        self.require(parameters)
        module = _Levels(self._spec, self._data)
        load(module, parameters)
        return module
