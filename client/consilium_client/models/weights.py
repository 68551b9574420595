"""Parameters as named tensors, and as files of weights: safetensors, with the expected tensors and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from consilium_client.errors import ModelError
from consilium_client.models import Vector

MOST_HEADER = 1 << 20  # bytes beside the values

Tensors = Mapping[str, NDArray[np.float32]]


def named_tensors(spec: TaskSpec, parameters: Vector) -> dict[str, NDArray[np.float32]]:
    """`parameters`: (p,), cut by `Family.tensors`."""
    found, position = {}, 0
    for name, shape in spec.model.tensors(spec.data).items():
        size = math.prod(shape)
        found[name] = np.ascontiguousarray(parameters[position : position + size].reshape(shape), np.float32)
        position += size
    return found


def shared_tensors(spec: TaskSpec, parameters: Vector) -> dict[str, NDArray[np.float32]]:
    """The same without local tensors."""
    named = named_tensors(spec, parameters)
    return {name: values for name, values in named.items() if name not in spec.training.local}


def vector_of(tensors: Tensors) -> Vector:
    """Their values, in their order."""
    return np.concatenate([values.reshape(-1) for values in tensors.values()])


def parse_weights(raw: bytes, spec: TaskSpec) -> Vector:
    """All of a model, float32 (p,). Raises ModelError (WeightsUnusable)."""
    return vector_of(parse_model_tensors(raw, spec, spec.model.tensors(spec.data)))


def parse_model_tensors(raw: bytes, spec: TaskSpec, names: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """These tensors of the task's model, in this order, all of them finite. Raises ModelError (WeightsUnusable)."""
    shapes = spec.model.tensors(spec.data)
    found = parse_tensors(raw, {name: (shapes[name], "float32") for name in names})
    if not all(np.isfinite(values).all() for values in found.values()):
        raise _unusable("it has values that are not finite")
    return found


def parse_tensors(raw: bytes, wanted: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, NDArray[Any]]:
    """Tensors of these shapes and types, in this order. Raises ModelError (WeightsUnusable)."""
    size = sum(math.prod(shape) * np.dtype(type_).itemsize for shape, type_ in wanted.values())
    if len(raw) > size + MOST_HEADER:
        raise _unusable(f"it has {len(raw):,} bytes, more than the {size:,} of its tensors")
    try:
        tensors = load(raw)
    except SafetensorError as error:
        raise _unusable("it is not a safetensors file") from error
    if {name: (one.shape, one.dtype.name) for name, one in tensors.items()} != dict(wanted):
        raise _unusable("its tensors do not have the names, shapes and types of the task's model")
    return {name: tensors[name] for name in wanted}


def _unusable(why: str) -> ModelError:
    return ModelError("WeightsUnusable", why=why)
