"""The convolutional network: what it computes, that it trains, privately too, and on real images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from consilium_chain.tasks.convolution_specs import CnnSpec
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import public_sums, sums_of
from consilium_client.errors import ModelError
from consilium_client.models import model_of
from consilium_client.models.cnn import Cnn
from consilium_client.models.metrics import accuracy, auc
from consilium_client.models.torch_parameters import flatten
from consilium_client.models.training import train
from private_steps import NORM, moved_by_the_last
from raised_faults import raises_fault

PNEUMONIA = Path(__file__).resolve().parents[3] / "shared" / "data" / "pneumoniamnist" / "pneumoniamnist_rebuilt.npz"


def spec_of(side: int = 8, channels: int = 1, classes: int = 2, **training: object) -> TaskSpec:
    return TaskSpec.model_validate(
        {
            "name": "images",
            "data": {
                "kind": "images", "height": side, "width": side, "channels": channels,
                "classes": [f"class {at}" for at in range(classes)],
            },
            "model": {"name": "cnn", "channels": [4, 8]},
            "training": {"epochs": 8, "batch_size": 16, "learning_rate": 0.1, **training},
        }
    )  # fmt: skip


def stripes(count: int, side: int = 8, channels: int = 1) -> ImageSet:
    """Class 1 has its bright stripes upright, class 0 lying."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, count)
    lying = np.where(np.arange(side) % 4 < 2, 200, 30)[:, None] * np.ones(side)
    pixels = np.stack([lying.T if label else lying for label in labels])[:, None].repeat(channels, axis=1)
    noisy = np.clip(pixels + random.normal(0, 20, pixels.shape), 0, 255)
    return ImageSet(noisy.astype(np.uint8), labels.astype(np.int64))


def test_convolution_matches_the_formula() -> None:
    """One block of one channel, by hand: correlate, ReLU, the largest of each four, their mean, one dense layer."""
    schema = ImageSchema(kind="images", height=8, width=8, classes=["no", "yes"])
    random = np.random.default_rng(1)
    kernel, bias, weight, last = random.normal(size=(3, 3)), 0.2, 1.5, -0.3
    parameters = np.array([*kernel.ravel(), bias, weight, last], dtype=np.float32)
    image = random.normal(size=(8, 8)).astype(np.float32)
    around = np.pad(image.astype(np.float64), 1)
    seen = np.array([[(around[r : r + 3, c : c + 3] * kernel).sum() for c in range(8)] for r in range(8)])
    pooled = np.maximum(seen + bias, 0).reshape(4, 2, 4, 2).max(axis=(1, 3)).mean()
    found = Cnn(CnnSpec(channels=[1]), schema).evaluate(parameters, image[None, None])
    np.testing.assert_allclose(found.activations, [[pooled]], rtol=1e-5)
    np.testing.assert_allclose(found.predictions[0, 1], 1 / (1 + np.exp(-(weight * pooled + last))), rtol=1e-5)


@pytest.mark.parametrize(("channels", "classes"), [(1, 2), (3, 5)])
def test_module_holds_the_parameters(channels: int, classes: int) -> None:
    spec = spec_of(channels=channels, classes=classes)
    model, random = model_of(spec), np.random.default_rng(0)
    parameters = random.normal(size=spec.parameters).astype(np.float32)
    module = model.module(parameters)
    np.testing.assert_array_equal(flatten(module), parameters)
    assert module(torch.zeros(2, channels, 8, 8)).shape == (2, 1 if classes == 2 else classes)
    assert model.initial(3).shape == parameters.shape
    torch.manual_seed(1)
    np.testing.assert_array_equal(model.initial(3), model.initial(3))


def test_training_tells_stripes_apart_and_repeats_itself() -> None:
    spec, images = spec_of(), stripes(120)
    model = model_of(spec)
    inputs = model.inputs(images, sums_of(images, spec.data))
    assert abs(float(inputs.mean())) < 1e-4
    assert float(inputs.std()) == pytest.approx(1, abs=1e-4)
    trained = train(spec, model.initial(0), inputs, images.labels, seed=1)
    assert accuracy(images.labels, model.evaluate(trained, inputs).predictions) > 0.95
    np.testing.assert_array_equal(trained, train(spec, model.initial(0), inputs, images.labels, seed=1))


def test_hospitals_sums_add_up_to_those_of_all_images() -> None:
    spec, images = spec_of(channels=3), stripes(30, channels=3)
    parts = [ImageSet(images.pixels[a:b], images.labels[a:b]) for a, b in ((0, 4), (4, 30))]
    together = sums_of(images, spec.data)
    assert together.shape == (spec.statistics_values,) == public_sums(spec.data).shape
    np.testing.assert_allclose(sum(sums_of(part, spec.data) for part in parts), together)
    np.testing.assert_allclose(together[:3], 30)


def test_no_image_moves_a_private_step_by_more_than_the_norm() -> None:
    """With the batch of all images and noise next to none, with one image more; it would move the step far more."""
    spec = spec_of(batch_size=10, learning_rate=1.0)
    images, model = stripes(11), model_of(spec)
    inputs = model.inputs(images, public_sums(spec.data))
    inputs[10] *= 1_000
    # One of the two labels is right, and without a gradient.
    moved = max(moved_by_the_last(spec, inputs, np.append(images.labels[:10], label)) for label in (0, 1))
    assert moved == pytest.approx(NORM / 10, rel=1e-3)


def test_other_shapes_are_refused() -> None:
    spec = spec_of()
    model = model_of(spec)
    with raises_fault(ModelError, "ShapeMismatch"):
        model.evaluate(model.initial(0), np.zeros((2, 1, 8, 9), np.float32))
    with raises_fault(ModelError, "ShapeMismatch"):
        train(spec, model.initial(0), np.zeros((2, 3, 8, 8), np.float32), np.zeros(2, np.int64), seed=0)


@pytest.mark.skipif(not PNEUMONIA.exists(), reason=f"no images of PneumoniaMNIST at {PNEUMONIA}")
def test_it_learns_pneumonia() -> None:
    """Half an epoch of the real training images; the larger class is .625 of the test images."""
    with np.load(PNEUMONIA, allow_pickle=False) as arrays:
        sets = {
            part: ImageSet(arrays[f"{part}_images"][:, None], arrays[f"{part}_labels"].ravel().astype(np.int64))
            for part in ("train", "test")
        }
    some = np.random.default_rng(0).permutation(sets["train"].rows)[:2_400]
    training = ImageSet(sets["train"].pixels[some], sets["train"].labels[some])
    spec = spec_of(28, epochs=1, learning_rate=0.005, optimizer="adamw")
    model, sums = model_of(spec), sums_of(training, spec.data)
    trained = train(spec, model.initial(0), model.inputs(training, sums), training.labels, seed=0)
    found = model.evaluate(trained, model.inputs(sets["test"], sums)).predictions
    assert accuracy(sets["test"].labels, found) > 0.75
    ranked = auc(sets["test"].labels, found)
    assert ranked is not None
    assert ranked > 0.85
