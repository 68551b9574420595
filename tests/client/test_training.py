"""Training: it learns, repeats itself bit by bit, and refuses what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.errors import DataError, ModelError
from consilium_client.models import model_of
from consilium_client.models.metrics import accuracy, log_loss
from consilium_client.models.training import in_round, require_device, train
from pydantic import ValidationError
from raised_faults import raises_fault


def _spec(model: dict[str, Any] | None = None, **training: Any) -> TaskSpec:
    return TaskSpec.model_validate(
        {
            "name": "toy",
            "data": {
                "features": [{"kind": "numeric", "name": name, "min": -9, "max": 9} for name in ("a", "b")],
                "label": "y",
                "classes": ["no", "yes"],
            },
            "model": model or {"name": "logistic"},
            "training": {"epochs": 20, "batch_size": 8, "learning_rate": 0.1, **training},
        }
    )


def _rings(rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Class 1 lies far from the origin: an mlp can tell, a line cannot."""
    features = np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32)
    return features, (np.linalg.norm(features, axis=1) > 1.2).astype(np.int64)


def _line(rows: int = 100) -> tuple[np.ndarray, np.ndarray]:
    features = np.random.default_rng(0).normal(size=(rows, 2)).astype(np.float32)
    return features, (features[:, 0] > features[:, 1]).astype(np.int64)


def test_training_shows_each_step_and_does_nothing_else_for_it() -> None:
    spec, (features, labels) = _spec(epochs=3, batch_size=8), _line(20)
    base = model_of(spec).initial(0)
    seen: list[tuple[int, int, float]] = []
    trained = train(spec, base, features, labels, seed=1, progress=lambda *step: seen.append(step))
    np.testing.assert_array_equal(trained, train(spec, base, features, labels, seed=1))
    assert [step[:2] for step in seen] == [(done, 9) for done in range(1, 10)]
    assert seen[0][2] == pytest.approx(np.log(2))
    assert seen[-1][2] < seen[0][2]


def test_train_lowers_the_loss() -> None:
    spec, (features, labels) = _spec(), _line()
    base = model_of(spec).initial(0)
    trained = train(spec, base, features, labels, seed=1)
    assert trained.dtype == np.float32
    before, after = (log_loss(labels, model_of(spec).evaluate(p, features).predictions) for p in (base, trained))
    assert before == pytest.approx(np.log(2))
    assert after < 0.3
    assert not base.any()  # the base was not written to


def test_train_mlp_learns_what_a_line_cannot() -> None:
    spec, (features, labels) = _spec({"name": "mlp", "hidden": [16]}, epochs=60), _rings()
    trained = train(spec, model_of(spec).initial(3), features, labels, seed=1)
    assert accuracy(labels, model_of(spec).evaluate(trained, features).predictions) > 0.9


def test_train_repeats_itself_for_the_same_seed() -> None:
    spec, (features, labels) = _spec(), _line()
    base = model_of(spec).initial(0)
    first = train(spec, base, features, labels, seed=5)
    torch.manual_seed(99)
    np.testing.assert_array_equal(train(spec, base, features, labels, seed=5), first)
    assert not np.array_equal(train(spec, base, features, labels, seed=6), first)


def test_train_one_step_is_the_gradient_step() -> None:
    """One epoch in one batch: base minus learning rate times (gradient plus weight decay times base)."""
    features, labels = _line(10)
    spec = _spec(epochs=1, batch_size=10, learning_rate=0.5, weight_decay=0.1)
    base = np.array([0.3, -0.2, 0.1], dtype=np.float32)
    error = 1 / (1 + np.exp(-(features @ base[:2] + base[2]))) - labels
    gradient = np.append(features.T @ error, error.sum()) / 10
    expected = base - 0.5 * (gradient + 0.1 * base)
    np.testing.assert_allclose(train(spec, base, features, labels, seed=0), expected, rtol=1e-5)


def test_steps_count_instead_of_epochs_and_go_on_through_the_rows() -> None:
    """Seven steps of eight rows of twenty: two passes of three steps, and the first step of a third."""
    features, labels = _line(20)
    seen: list[tuple[int, int, float]] = []
    base = np.array([0.3, -0.2, 0.1], dtype=np.float32)
    found = train(_spec(epochs=1, steps=7), base, features, labels, 1, lambda *step: seen.append(step))
    assert [step[:2] for step in seen] == [(done, 7) for done in range(1, 8)]
    shorter = train(_spec(epochs=1, steps=6), base, features, labels, 1)
    np.testing.assert_array_equal(shorter, train(_spec(epochs=2), base, features, labels, 1))
    assert not np.array_equal(found, shorter)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [("constant", [0.4] * 4), ("linear", [0.4, 0.3, 0.2, 0.1]), ("cosine", [0.4, 0.3414, 0.2, 0.0586])],
)
def test_a_schedule_lowers_the_rate_of_each_round(schedule: str, rates: list[float]) -> None:
    features, labels = _line(10)
    spec = _spec(epochs=1, batch_size=10, learning_rate=0.4, schedule=schedule)
    spec = spec.model_copy(update={"rounds": spec.rounds.model_copy(update={"rounds": 4})})
    base = np.array([0.3, -0.2, 0.1], dtype=np.float32)
    step = train(_spec(epochs=1, batch_size=10, learning_rate=1), base, features, labels, 0) - base
    for round_, rate in enumerate(rates, start=1):
        moved = train(in_round(spec, round_), base, features, labels, 0) - base
        np.testing.assert_allclose(moved, rate * step, atol=1e-4)


def test_steps_and_epochs_do_not_go_together() -> None:
    with pytest.raises(ValidationError, match="steps 7 and epochs 20 are both set"):
        _spec(steps=7)


def test_the_proximal_term_is_fedproxs() -> None:
    """Two steps over the same batch: the second one's gradient has μ times the way that the first one went."""
    features, labels = _line(10)
    plain = _spec(epochs=1, batch_size=10, learning_rate=0.5)
    spec = _spec(epochs=2, batch_size=10, learning_rate=0.5, proximal=0.25)
    base = np.array([0.3, -0.2, 0.1], dtype=np.float32)
    first = train(plain, base, features, labels, seed=0)
    second = train(plain, first, features, labels, seed=0)
    expected = second - 0.5 * 0.25 * (first - base)
    np.testing.assert_allclose(train(spec, base, features, labels, seed=0), expected, rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_strong_proximal_term_keeps_a_model_near_its_base(optimizer: str) -> None:
    features, labels = _line()
    near, far = (_spec(epochs=20, optimizer=optimizer, learning_rate=0.01, proximal=mu) for mu in (50.0, 0.0))
    base = np.array([0.3, -0.2, 0.1], dtype=np.float32)
    moved = [float(np.linalg.norm(train(spec, base, features, labels, seed=0) - base)) for spec in (near, far)]
    assert moved[0] < moved[1] / 3


def test_train_raises_update_not_finite_when_it_runs_away() -> None:
    features, labels = _rings()
    spec = _spec({"name": "mlp", "hidden": [8]}, learning_rate=1e30)
    with raises_fault(ModelError, "UpdateNotFinite"):
        train(spec, model_of(spec).initial(0), features, labels, seed=0)


def test_train_refuses_wrong_shapes() -> None:
    spec, (features, labels) = _spec(), _line()
    base = model_of(spec).initial(0)
    with raises_fault(ModelError, "ShapeMismatch"):
        train(spec, base, features[:, :1], labels, seed=0)
    with raises_fault(ModelError, "ShapeMismatch"):
        train(spec, base, features, labels[:-1], seed=0)
    with raises_fault(ModelError, "ShapeMismatch"):
        train(spec, base[:-1], features, labels, seed=0)
    with raises_fault(DataError, "TooFewRows"):
        train(spec, base, features[:0], labels[:0], seed=0)
    with raises_fault(ModelError, "UpdateNotFinite"):
        train(spec, base * np.float32(np.nan), features, labels, seed=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_named_with_the_way_out() -> None:
    require_device(_spec(), "cpu")
    with raises_fault(ModelError, "DeviceMissing", match='or write device = "cpu"'):
        require_device(_spec(), "cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU that torch can use")
def test_a_gpu_trains_the_same_model() -> None:
    spec, (features, labels) = _spec({"name": "mlp", "hidden": [8]}), _line()
    base = model_of(spec).initial(0)
    here, there = (train(spec, base, features, labels, seed=1, device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(here, there, atol=1e-4)


def test_adamw_lowers_the_loss_and_repeats_itself() -> None:
    spec, (features, labels) = _spec(optimizer="adamw", learning_rate=0.01), _line()
    base = model_of(spec).initial(0)
    trained = train(spec, base, features, labels, seed=1)
    assert accuracy(labels, model_of(spec).evaluate(trained, features).predictions) > 0.9
    np.testing.assert_array_equal(trained, train(spec, base, features, labels, seed=1))


def test_many_classes_are_told_apart() -> None:
    """Three sectors of the plane; chance is a third."""
    spec = _spec(epochs=30)
    spec = TaskSpec.model_validate(
        {**spec.model_dump(), "data": {**spec.data.model_dump(), "classes": ["a", "b", "c"]}}
    )
    features, _ = _line(300)
    labels = (np.arctan2(features[:, 1], features[:, 0]) // (2 * np.pi / 3) + 2).astype(np.int64) % 3
    trained = train(spec, model_of(spec).initial(0), features, labels, seed=1)
    assert accuracy(labels, model_of(spec).evaluate(trained, features).predictions) > 0.9
