"""A model's inputs in `model.json`, read by other programs, are those that nodes compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.kinds import kind_of
from consilium_client.data.standardise import public_sums
from consilium_client.models import model_of
from consilium_operators.model_inputs import ChannelInput, CodeInput, NumericInput, model_inputs
from hypothesis import given
from hypothesis import strategies as st

TABLE = {
    "label": "y", "classes": ["a", "b"],
    "features": [
        {"name": "p", "min": -3.0, "max": 7.5, "mean": 1.0, "deviation": 2.0},
        {"name": "q", "kind": "category", "values": [5, 1, 9]},
        {"name": "r", "min": 0.0, "max": 1e-3},
    ],
}  # fmt: skip
SPEC = TaskSpec.model_validate({"name": "read", "data": TABLE, "model": {"name": "logistic"}})
IMAGES = TaskSpec.model_validate({
    "name": "seen", "data": {"kind": "images", "classes": ["a", "b"], "height": 8, "width": 8, "channels": 3},
    "model": {"name": "cnn", "channels": [2]},
})  # fmt: skip


def values() -> st.SearchStrategy[dict[str, float | None]]:
    columns: dict[str, Any] = {"p": st.floats(-3, 7.5), "q": st.sampled_from([5, 1, 9]), "r": st.floats(0, 1e-3)}
    return st.fixed_dictionaries({name: st.none() | values for name, values in columns.items()})


@st.composite
def exact_sums(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Of exact statistics: with columns that have no values, or one value alone."""
    columns = SPEC.data.statistics_values // 3
    counts = np.array(draw(st.lists(st.integers(0, 50), min_size=columns, max_size=columns)), dtype=np.float64)
    means = np.array(draw(st.lists(st.floats(0, 1), min_size=columns, max_size=columns)))
    spread = np.array(draw(st.lists(st.sampled_from([0.0, 0.04]), min_size=columns, max_size=columns)))
    return np.concatenate([counts, counts * means, counts * (means**2 + spread)])


def plain(inputs: Any, row: dict[str, float | None]) -> list[float]:
    """As the recipe in docs/models.md, of one row."""
    found = []
    for one in inputs:
        value = row[one.column]
        if value is not None and isinstance(one, CodeInput):
            value = float(value == one.code)
        found.append(0.0 if value is None else (value - one.subtract) * one.multiply)
    return found


@given(st.lists(values(), min_size=1, max_size=5), st.just(public_sums(SPEC.data)) | exact_sums())
def test_a_table_has_the_same_inputs_by_hand(rows: list[dict[str, float | None]], sums: np.ndarray[Any, Any]) -> None:
    examples = kind_of(SPEC.data).requested(rows, SPEC.data, ValueError)
    expected = model_of(SPEC).inputs(examples, sums)
    found = np.array([plain(model_inputs(SPEC.data, sums), row) for row in rows])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_inputs_have_the_columns_ranges_and_codes() -> None:
    p, first, second, r = model_inputs(SPEC.data, public_sums(SPEC.data))
    assert isinstance(p, NumericInput)
    assert (p.column, p.min, p.max, p.subtract, 1 / p.multiply) == ("p", -3.0, 7.5, 1.0, 2.0)
    assert [(one.code, one.codes) for one in (first, second) if isinstance(one, CodeInput)] == [
        (1.0, (5.0, 1.0, 9.0)), (9.0, (5.0, 1.0, 9.0)),
    ]  # fmt: skip
    assert isinstance(r, NumericInput)
    assert math.isclose(r.subtract, 5e-4)


def test_images_have_the_same_inputs_by_hand() -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (2, 3, 8, 8), dtype=np.uint8)
    sums = public_sums(IMAGES.data)
    channels = [one for one in model_inputs(IMAGES.data, sums) if isinstance(one, ChannelInput)]
    assert [one.channel for one in channels] == ["red", "green", "blue"]
    found = np.stack([(pixels[:, at] - one.subtract) * one.multiply for at, one in enumerate(channels)], axis=1)
    expected = model_of(IMAGES).inputs(ImageSet(pixels, np.zeros(2, np.int64)), sums)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
