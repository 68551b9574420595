"""Imports a plug-in and builds its module: in the process that computes it, and in no other.

A plug-in's entry point is a function or class, `build(data, arguments)`, that gives a `torch.nn.Module`. Texts of its
errors are told while it has no rows; afterwards only their kind.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import torch
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.model_specs import PluginSpec
from numpy.typing import NDArray
from torch import nn

from consilium_client.errors import ModelError
from consilium_client.models import Vector
from consilium_client.models.torch_parameters import flatten, learnt, trainable
from consilium_client.plugins.errors import PluginError
from consilium_client.plugins.importing import failed, imported, told
from consilium_client.programs.confined import is_elsewhere

Readable = TableSchema | ImageSchema
Build = Callable[[Mapping[str, Any], Mapping[str, Any]], nn.Module]
DESCRIBED: Final = 1 << 20  # bytes of a description
_MOST_SEED: Final = (1 << 63) - 1  # of torch's generator
_TRIED: Final = 4  # rows

_built: dict[str, tuple[Build, nn.Module]] = {}


class PluginModule(nn.Module):
    """A plug-in's module, whose results are checked. `moving`: its tensors that layers write in training."""

    def __init__(self, inner: nn.Module, spec: PluginSpec, outputs: int) -> None:
        super().__init__()
        self.inner = inner
        self._spec, self._outputs = spec, outputs

    @property
    def moving(self) -> dict[str, torch.Tensor]:
        buffers = dict(self.inner.named_buffers())
        return {name: buffers[name] for name in self._spec.moving if name in buffers}

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Logits (n, outputs). Raises PluginError (PluginFailed)."""
        try:
            found = self.inner(rows)
        except (Exception, SystemExit) as error:
            raise failed(self._spec, "its forward", type(error).__name__) from None
        if not isinstance(found, torch.Tensor) or not found.is_floating_point():
            raise failed(self._spec, "its forward", "it gives no tensor of floating point numbers")
        if found.shape != (len(rows), self._outputs):
            why = f"it gives logits of shape {tuple(found.shape)}, not {(len(rows), self._outputs)}"
            raise failed(self._spec, "its forward", why)
        return found


def facts(data: Readable) -> Mapping[str, Any]:
    """A task's data for a plug-in: kind, classes, outputs, and columns, or channels, height and width."""
    found: dict[str, Any] = {"kind": data.kind, "classes": tuple(data.classes), "outputs": data.outputs}
    if isinstance(data, TableSchema):
        return found | {"columns": data.columns}
    return found | {"channels": data.channels, "height": data.height, "width": data.width}


def input_shape(data: Readable) -> tuple[int, ...]:
    """Of one row."""
    return (data.columns,) if isinstance(data, TableSchema) else (data.channels, data.height, data.width)


def built(spec: PluginSpec, data: Readable) -> nn.Module:
    """Its module as it is built from the seed 0, imported at the first call.

    Raises PluginError (PluginFailed, and as `verified` does).
    """
    _, found = _made(spec, data)
    return found


def start(spec: PluginSpec, data: Readable, seed: int) -> Vector:
    """The values that it draws from a seed, float32 (p,). Raises PluginError (PluginFailed, and as `verified` does)."""
    build, _ = _made(spec, data)
    return flatten(_require_stated(_build(build, spec, data, seed), spec, data))


def module(spec: PluginSpec, data: Readable) -> PluginModule:
    """A new copy of its module. What is not trained is as the seed 0 left it, the same everywhere.

    Raises PluginError (PluginFailed, and as `verified` does).
    """
    try:
        found = copy.deepcopy(built(spec, data))
    except (Exception, SystemExit) as error:
        if isinstance(error, ModelError):
            raise
        raise failed(spec, "being copied", told(error)) from None
    return _require_stated(found, spec, data)


def described(spec: PluginSpec, data: Readable) -> NDArray[np.uint8]:
    """JSON of its trained tensors' `shapes`, and of those that `moving` in training; then zeros, DESCRIBED bytes.

    Raises PluginError (PluginFailed).
    """
    inner = copy.deepcopy(built(spec, data))
    shapes = {name: list(one.shape) for name, one in inner.named_parameters() if one.requires_grad}
    before = {name: one.clone() for name, one in inner.named_buffers() if one.dtype == torch.float32}
    rows = torch.randn((_TRIED, *input_shape(data)), generator=torch.Generator().manual_seed(0))
    PluginModule(inner.train(), spec, data.outputs)(rows)
    after = dict(inner.named_buffers())
    moving = [name for name, one in before.items() if name not in after or not torch.equal(one, after[name])]
    shapes |= {name: list(before[name].shape) or [1] for name in moving}
    raw = json.dumps({"shapes": shapes, "moving": moving}).encode()
    if len(raw) > DESCRIBED:
        raise failed(spec, "its description", "its tensors' names are too long")
    return np.frombuffer(raw.ljust(DESCRIBED, b"\0"), np.uint8)


def _made(spec: PluginSpec, data: Readable) -> tuple[Build, nn.Module]:
    if is_elsewhere():
        raise PluginError("PluginElsewhere", plugin=spec.in_words)
    key = spec.model_dump_json(exclude={"shapes", "moving"}) + data.model_dump_json()
    if key not in _built:
        build: Build = imported(spec)
        _built[key] = build, _build(build, spec, data, 0)
    return _built[key]


def _build(build: Build, spec: PluginSpec, data: Readable, seed: int) -> nn.Module:
    torch.manual_seed(seed & _MOST_SEED)
    np.random.seed(seed & 0xFFFFFFFF)
    random.seed(seed)
    try:
        found = build(MappingProxyType(dict(facts(data))), MappingProxyType(dict(spec.arguments)))
    except (Exception, SystemExit) as error:
        raise failed(spec, "building its module", told(error)) from None
    if not isinstance(found, nn.Module):
        raise failed(spec, "building its module", f"it gives {type(found).__name__}, and no torch.nn.Module")
    if any(one.dtype != torch.float32 for one in trainable(found)):
        raise failed(spec, "building its module", "it has trained tensors that are not float32")
    return found


def _require_stated(inner: nn.Module, spec: PluginSpec, data: Readable) -> PluginModule:
    found = PluginModule(inner, spec, data.outputs)
    names = [name for name, one in inner.named_parameters() if one.requires_grad] + list(found.moving)
    shapes = [(name, tuple(one.shape) or (1,)) for name, one in zip(names, learnt(found), strict=True)]
    if shapes != list(spec.tensors(data).items()):
        raise failed(spec, "building its module", "its trained tensors are not those of the task file, in their order")
    return found
