"""The temporal convolution: what it computes, that it trains, privately too; and dense models on all steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.convolution_specs import TcnSpec
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.series.stays import Stays
from consilium_client.data.standardise import public_sums, sums_of
from consilium_client.models import model_of
from consilium_client.models.metrics import accuracy
from consilium_client.models.tcn import Tcn
from consilium_client.models.torch_parameters import flatten
from consilium_client.models.training import train
from private_steps import NORM, moved_by_the_last

MODELS = ({"name": "tcn", "channels": [6, 6]}, {"name": "mlp", "hidden": [6]}, {"name": "logistic"})
TOML = """
name = "icu"
[data]
kind = "series"
{asked}
steps = {steps}
[[data.features]]
name = "a"
min = 0
max = 1
{more}
[model]
{model}
"""


def toml(
    asked: str = 'label = "died"\nclasses = ["no", "yes"]', steps: int = 8, more: str = "", model: str = ""
) -> bytes:
    return TOML.format(asked=asked, steps=steps, more=more, model=model or 'name = "tcn"\nchannels = [4]').encode()


def spec_of(model: object = MODELS[0], classes: int = 2, variables: int = 2, **training: object) -> TaskSpec:
    features = [{"name": f"v{at}", "min": 0, "max": 1} for at in range(variables)]
    asked = {"label": "died", "classes": [f"class {at}" for at in range(classes)]}
    return TaskSpec.model_validate({
        "name": "series", "data": {"kind": "series", "steps": 8, "features": features, **asked}, "model": model,
        "training": {"epochs": 20, "batch_size": 16, "learning_rate": 0.1, **training},
    })  # fmt: skip


def rising(count: int, variables: int = 2) -> Stays:
    """Class 1 rises, class 0 falls; two of three values are missing."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, count)
    slopes = np.where(labels == 1, 0.05, -0.05)[:, None, None] * np.arange(-3.5, 4)
    values = np.clip(0.5 + slopes + random.normal(0, 0.05, (count, variables, 8)), 0, 1)
    values[random.random(values.shape) < 0.6] = np.nan
    return Stays(values.astype(np.float32), labels.astype(np.int64))


def test_convolution_matches_the_formula() -> None:
    """Two blocks, by hand: correlate with the neighbours and ReLU, then with those two steps away; mean, dense."""
    schema = SeriesSchema.model_validate({
        "kind": "series", "label": "y", "classes": ["no", "yes"], "steps": 8,
        "features": [{"name": "a", "min": 0, "max": 1}],
    })  # fmt: skip
    random = np.random.default_rng(1)
    first, second, weight = random.normal(size=(2, 3)), random.normal(size=3), 1.5
    parameters = np.array([*first.ravel(), 0.2, *second, -0.1, weight, -0.3], dtype=np.float32)
    stay = random.normal(size=(2, 8)).astype(np.float32)
    around = np.pad(stay.astype(np.float64), ((0, 0), (1, 1)))
    one = np.maximum([(around[:, t : t + 3] * first).sum() + 0.2 for t in range(8)], 0)
    wide = np.pad(one, 2)
    two = np.maximum([(wide[[t, t + 2, t + 4]] * second).sum() - 0.1 for t in range(8)], 0).mean()
    found = Tcn(TcnSpec(channels=[1, 1]), schema).evaluate(parameters, stay[None])
    np.testing.assert_allclose(found.activations, [[two]], rtol=1e-5)
    np.testing.assert_allclose(found.predictions[0, 1], 1 / (1 + np.exp(-(weight * two - 0.3))), rtol=1e-5)


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one["name"])
@pytest.mark.parametrize(("classes", "variables"), [(2, 1), (5, 3)])
def test_module_holds_the_parameters(model: dict[str, object], classes: int, variables: int) -> None:
    spec = spec_of(model, classes, variables)
    found, random = model_of(spec), np.random.default_rng(0)
    parameters = random.normal(size=spec.parameters).astype(np.float32)
    module = found.module(parameters)
    np.testing.assert_array_equal(flatten(module), parameters)
    shapes = {name: tuple(one.shape) for name, one in module.named_parameters()}
    assert shapes == spec.model.tensors(spec.data)
    inputs = found.inputs(rising(3, variables), public_sums(spec.data))
    assert inputs.shape[1:] == found.input_shape
    assert module(torch.from_numpy(inputs)).shape == (3, 1 if classes == 2 else classes)
    np.testing.assert_array_equal(found.initial(3), found.initial(3))


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one["name"])
def test_training_tells_rising_from_falling_and_repeats_itself(model: dict[str, object]) -> None:
    spec, stays = spec_of(model), rising(150)
    found = model_of(spec)
    inputs = found.inputs(stays, sums_of(stays, spec.data))
    trained = train(spec, found.initial(0), inputs, stays.labels, seed=1)
    assert accuracy(stays.labels, found.evaluate(trained, inputs).predictions) > 0.9
    np.testing.assert_array_equal(trained, train(spec, found.initial(0), inputs, stays.labels, seed=1))


def test_no_stay_moves_a_private_step_by_more_than_the_norm() -> None:
    """With the batch of all stays and noise next to none, with one stay more; it would move the step far more."""
    spec = spec_of(batch_size=10, learning_rate=1.0)
    stays, model = rising(11), model_of(spec)
    inputs = model.inputs(stays, public_sums(spec.data))
    inputs[10] *= 1_000
    # One of the two labels is right, and without a gradient.
    moved = max(moved_by_the_last(spec, inputs, np.append(stays.labels[:10], label)) for label in (0, 1))
    assert moved == pytest.approx(NORM / 10, rel=1e-3)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (toml(model='name = "cnn"'), "takes data of kind images"),
        (toml(model='name = "tcn"\nchannels = [4, 4, 4, 4]'), "reach beyond 8 steps"),
        (toml(more='missing = "indicator"'), "remove missing"),
        (toml(more='[[data.features]]\nname = "time"\nmin = 0\nmax = 1'), "columns named twice: time"),
        (toml(more='[[data.features]]\nkind = "category"\nname = "b"\nvalues = [0, 1]'), "numeric"),
        (toml(steps=1), "steps"),
    ],
)
def test_task_files_that_do_not_fit_are_refused(raw: bytes, why: str) -> None:
    with pytest.raises(SpecInvalid, match=why):
        parse_task_spec(raw)


def test_steps_and_ranges_determine_a_rows_numbers() -> None:
    schemas = [
        parse_task_spec(toml()), parse_task_spec(toml(steps=9)), parse_task_spec(toml(more="mean = 0.4")),
        parse_task_spec(toml().replace(b"max = 1", b"max = 2")),
        parse_task_spec(toml().replace(b"steps = 8", b"steps = 8\nstep = 2")),
    ]  # fmt: skip
    encodings = [one.data.row_encoding for one in schemas]
    assert encodings[0] == encodings[2]
    assert len(set(encodings)) == 4
