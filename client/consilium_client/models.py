"""The models that this installation runs, by name; a task names one and never brings its own.

Parameters travel as one float32 vector (p,): layer by layer from the input, each layer's weight matrix (outputs,
inputs) row by row, then its bias (outputs,). `logistic` is one layer, `mlp` puts ReLU between layers. The last layer
has one output, the logit of class 1. p is `ModelSpec.parameters(columns)`.
"""

from __future__ import annotations

import itertools

import numpy as np
from consilium_chain.task_spec import ModelSpec
from numpy.typing import NDArray

from consilium_client.errors import ShapeMismatch, UpdateNotFinite


def initial_parameters(spec: ModelSpec, columns: int, seed: int) -> NDArray[np.float32]:
    """Starting parameters float32 (p,), the same on every machine for the same seed (an integer ≥ 0).

    logistic starts at zero. mlp draws weights of deviation sqrt(2 / inputs) (He) with zero biases from numpy's PCG64:
    torch's own generator is one per process, and whoever else draws from it would move the start.
    """
    if spec.name == "logistic":
        return np.zeros(spec.parameters(columns), dtype=np.float32)
    generator = np.random.Generator(np.random.PCG64(seed))
    parts = []
    for inputs, outputs in itertools.pairwise(_widths(spec, columns)):
        parts.append(generator.standard_normal(inputs * outputs) * np.sqrt(2.0 / inputs))
        parts.append(np.zeros(outputs))
    return np.concatenate(parts).astype(np.float32)


def predict(
    spec: ModelSpec, columns: int, parameters: NDArray[np.float32], features: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Probability of class 1 per row, float64 (n,), in [0, 1]. Raises ShapeMismatch, UpdateNotFinite.

    Computed in double precision, so that two voters' machines agree far below a millionth, and by numpy, so that a
    voter's node needs no torch.
    """
    if features.ndim != 2 or features.shape[1] != columns:
        raise ShapeMismatch("features", ("n", columns), features.shape)
    values = features.astype(np.float64)
    layers = layers_of(spec, columns, parameters)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        for index, (weight, bias) in enumerate(layers):
            values = values @ weight.T.astype(np.float64) + bias.astype(np.float64)
            if index + 1 < len(layers):
                values = np.maximum(values, 0.0)
    logits = values[:, 0]
    require_finite("predictions", logits)
    # Of two forms of the sigmoid, each row takes the one that cannot overflow.
    small = np.exp(-np.abs(logits))
    probabilities: NDArray[np.float64] = np.where(logits >= 0, 1.0, small) / (1.0 + small)
    return probabilities


def layers_of(
    spec: ModelSpec, columns: int, parameters: NDArray[np.float32]
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Each layer's weight (outputs, inputs) and bias (outputs,), as views. Raises ShapeMismatch, UpdateNotFinite."""
    expected = spec.parameters(columns)
    if parameters.shape != (expected,):
        raise ShapeMismatch("parameters", (expected,), parameters.shape)
    require_finite("parameters", parameters)
    layers, position = [], 0
    for inputs, outputs in itertools.pairwise(_widths(spec, columns)):
        middle, end = position + inputs * outputs, position + (inputs + 1) * outputs
        layers.append((parameters[position:middle].reshape(outputs, inputs), parameters[middle:end]))
        position = end
    return layers


def require_finite(what: str, values: NDArray[np.float32] | NDArray[np.float64]) -> None:
    """Raises UpdateNotFinite unless every value is finite."""
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise UpdateNotFinite(what, bad, values.size)


def _widths(spec: ModelSpec, columns: int) -> list[int]:
    return [columns, *spec.hidden, 1]
