"""Kinds of data and model families: which go together, and how many values an update has."""

from __future__ import annotations

from typing import Any

import pytest
from consilium_chain.tasks.task_spec import TaskSpec
from pydantic import ValidationError

CLASSES = ["no", "yes"]
THIRTEEN = {
    "features": [{"name": f"x{at}", "min": 0, "max": 1} for at in range(13)], "label": "y", "classes": CLASSES,
}  # fmt: skip
IMAGES = {"kind": "images", "height": 28, "width": 28, "classes": CLASSES}
TEXTS = {"kind": "text", "label": "type", "classes": [f"class {at}" for at in range(9)]}
LORA = {"name": "lora"}
ENCODER = {"name": "encoder"}
LOW_RANK = {"bits": 6, "codec": {"name": "lowrank", "rank": 8}}


def task(data: dict[str, Any], model: dict[str, Any], **sections: Any) -> TaskSpec:
    return TaskSpec.model_validate({"name": "a task", "data": data, "model": model, **sections})


@pytest.mark.parametrize(
    ("data", "model", "parameters"),
    [
        (THIRTEEN, {"name": "logistic"}, 14),
        (THIRTEEN, {"name": "mlp", "hidden": [32, 16]}, 993),
        ({**THIRTEEN, "classes": ["a", "b", "c"]}, {"name": "logistic"}, 42),
        (IMAGES, {"name": "cnn"}, 160 + 4_640 + 18_496 + 65),
        ({**IMAGES, "channels": 3}, {"name": "cnn", "channels": [4]}, 3 * 9 * 4 + 4 + 5),
        # shared/data/YARDSTICKS.md counts the same by PEFT.
        (TEXTS, LORA, 77_193),
        ({**TEXTS, "classes": CLASSES}, {**LORA, "rank": 2}, 6 * 2 * 2 * 2 * 384 + 385),
    ],
)
def test_an_update_has_as_many_values(data: dict[str, Any], model: dict[str, Any], parameters: int) -> None:
    assert task(data, model).parameters == parameters


def test_all_weights_of_an_encoder_fit_a_transaction_by_a_codec_alone() -> None:
    of_five = {"max_hospitals": 5, "max_weight": 12}
    found = task(TEXTS, ENCODER, update=LOW_RANK, rounds=of_five)
    assert (found.parameters, found.coordinates, found.update_blobs) == (22_568_841, 444_977, 6)
    with pytest.raises(ValidationError, match="blobs, more than the 128 of a task: lower bits, choose a codec"):
        task(TEXTS, ENCODER, rounds=of_five)
    with pytest.raises(ValidationError, match='encoder has no form with noise: set it to "lora"'):
        task(TEXTS, ENCODER, update=LOW_RANK, rounds=of_five, privacy={"epsilon": 8, "max_grad_norm": 1})


@pytest.mark.parametrize(("data", "model"), [(THIRTEEN, {"name": "logistic"}), (IMAGES, {"name": "cnn"})])
def test_a_model_that_is_handed_anothers_data_counts_nothing(data: dict[str, Any], model: dict[str, Any]) -> None:
    own, others = task(data, model), task(TEXTS, LORA).data
    for count in (own.model.parameters, own.model.tensors):
        with pytest.raises(TypeError, match=f"a {type(own.data).__name__} is needed here, not a TextSchema"):
            count(others)


def test_an_adapters_update_fits_six_blobs() -> None:
    """Of six blobs a transaction. With all the hospitals that a task may have, each at the largest usual weight."""
    most = {"max_hospitals": 256, "max_weight": 64}
    assert task(TEXTS, LORA, update={"bits": 16}, rounds=most, judging={"max_voters": 8}).update_blobs == 3
    assert task(TEXTS, LORA, update={"bits": 8}, rounds={"max_hospitals": 5, "max_weight": 64}).update_blobs == 2


@pytest.mark.parametrize(
    ("data", "values"), [(THIRTEEN, 39), (IMAGES, 3), ({**IMAGES, "channels": 3}, 9), (TEXTS, 1)], ids=str
)
def test_round_0_sums_as_many_values(data: dict[str, Any], values: int) -> None:
    model = {"table": {"name": "logistic"}, "images": {"name": "cnn"}, "text": LORA}[data.get("kind", "table")]
    assert task(data, model).statistics_values == values


@pytest.mark.parametrize(
    ("data", "model", "said"),
    [
        (IMAGES, {"name": "logistic"}, "takes data of kind table or series, and the task has kind images"),
        (THIRTEEN, {"name": "cnn"}, "takes data of kind images, and the task has kind table"),
        (THIRTEEN, LORA, "takes data of kind text, and the task has kind table"),
        ({**IMAGES, "height": 8}, {"name": "cnn", "channels": [4] * 4}, "4 blocks halve 8 × 28 pixels to nothing"),
        ({**IMAGES, "channels": 17}, {"name": "cnn"}, "data.images.channels"),
        ({**IMAGES, "width": 513}, {"name": "cnn"}, "data.images.width"),
        ({**TEXTS, "text": "type"}, LORA, "the texts and the label have the same column type"),
        (TEXTS, {**LORA, "max_tokens": 513}, "reads 512 tokens at most: lower max_tokens from 513"),
        (TEXTS, {**LORA, "encoder": "somebody/else"}, "model.lora.encoder"),
        (TEXTS, {**LORA, "rank": 0}, "model.lora.rank"),
    ],
)
def test_what_does_not_go_together_is_refused(data: dict[str, Any], model: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        task(data, model)
    places = [".".join(map(str, fault["loc"])) + ": " + fault["msg"] for fault in caught.value.errors()]
    assert said in "; ".join(places)
