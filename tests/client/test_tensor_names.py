"""A model's named tensors are those of its torch module, in the order of the vector that travels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.models import model_of

TABLE = {"label": "y", "features": [{"name": name, "min": 0.0, "max": 1.0} for name in "abc"]}
IMAGES = {"kind": "images", "height": 16, "width": 8, "channels": 3}
TEXTS = {"kind": "text", "label": "y"}
CODECS = {"encoder": {"name": "lowrank", "rank": 8}}  # else it fits no task


def spec_of(data: dict[str, Any], model: dict[str, Any], classes: int) -> TaskSpec:
    return TaskSpec.model_validate(
        {
            "name": "named",
            "data": data | {"classes": [f"c{k}" for k in range(classes)]},
            "model": model,
            "update": {"codec": CODECS.get(model["name"], {"name": "dense"})},
        }
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("data", "model"),
    [
        (TABLE, {"name": "logistic"}),
        (TABLE, {"name": "mlp", "hidden": [5, 4]}),
        (IMAGES, {"name": "cnn", "channels": [4, 6]}),
        (TEXTS, {"name": "lora", "rank": 2}),
        (TEXTS, {"name": "encoder"}),
    ],
    ids=lambda value: value.get("name", ""),
)
def test_named_tensors_are_the_modules_own(data: dict[str, Any], model: dict[str, Any], classes: int) -> None:
    spec = spec_of(data, model, classes)
    tensors = spec.model.tensors(spec.data)
    assert sum(math.prod(shape) for shape in tensors.values()) == spec.parameters
    vector = np.arange(spec.parameters, dtype=np.float32)
    named = {name: one for name, one in model_of(spec).module(vector).named_parameters() if one.requires_grad}
    assert {name: tuple(one.shape) for name, one in named.items()} == tensors
    assert list(named) == list(tensors)
    position = 0
    for one in named.values():
        np.testing.assert_array_equal(one.detach().reshape(-1).numpy(), vector[position : position + one.numel()])
        position += one.numel()
