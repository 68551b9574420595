"""Parameters from a file of weights: safetensors, with the tensors of the task's model and nothing else."""

from __future__ import annotations

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from safetensors import SafetensorError
from safetensors.numpy import load

from consilium_client.errors import ModelError
from consilium_client.models import Vector

BYTES_PER_VALUE = 4
MOST_HEADER = 1 << 20  # bytes beside the values


def parse_weights(raw: bytes, spec: TaskSpec) -> Vector:
    """float32 (p,). Raises ModelError (WeightsUnusable)."""
    if len(raw) > BYTES_PER_VALUE * spec.parameters + MOST_HEADER:
        raise _unusable(f"it has {len(raw):,} bytes, more than a model of {spec.parameters:,} parameters")
    try:
        tensors = load(raw)
    except SafetensorError as error:
        raise _unusable("it is not a safetensors file") from error
    wanted = spec.model.tensors(spec.data)
    if {name: (one.shape, one.dtype.name) for name, one in tensors.items()} != {
        name: (shape, "float32") for name, shape in wanted.items()
    }:
        raise _unusable("its tensors do not have the names, shapes and types of the task's model")
    parameters: Vector = np.concatenate([tensors[name].reshape(-1) for name in wanted])
    if not np.isfinite(parameters).all():
        raise _unusable("it has values that are not finite")
    return parameters


def _unusable(why: str) -> ModelError:
    return ModelError("WeightsUnusable", why=why)
