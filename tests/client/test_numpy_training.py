"""Training without torch: the same update as torch's to rounding, for every question and way of a table's task."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.examples import Labels
from consilium_client.errors import ModelError
from consilium_client.models import model_of
from consilium_client.models.fold import Fold
from consilium_client.models.training import NUMPY, Guides, learn, require_device, train
from numpy.typing import NDArray
from raised_faults import raises_fault

Rows = tuple[NDArray[np.float32], Labels]
SEED = bytes(range(32))
COLUMNS = 6
ROUNDING = 2e-6  # of an update's largest value: sums are in another order
CLASSES = {"label": "y", "classes": ["no", "yes"]}
QUESTIONS: Mapping[str, dict[str, Any]] = {
    "two classes": CLASSES,
    "three classes": {"label": "y", "classes": ["a", "b", "c"]},
    "amount": {"question": {
        "kind": "regression", "label": "y", "unit": "d", "min": -9, "max": 9, "mean": 1, "deviation": 2,
    }},
    "labels": {"question": {"kind": "multilabel", "labels": ["p", "q"]}},
    "survival": {"question": {"kind": "survival", "time": "t", "event": "died", "unit": "d", "bounds": [1, 2, 4]}},
}  # fmt: skip
METRICS = {"amount": "r2"}
MODELS = {"logistic": {"name": "logistic"}, "mlp": {"name": "mlp", "hidden": [16, 8]}}
TRAININGS: Mapping[str, dict[str, Any]] = {
    "sgd": {}, "decay": {"weight_decay": 0.1},
    "adamw": {"optimizer": "adamw", "learning_rate": 0.01, "weight_decay": 0.1},
    "steps": {"steps": 7, "epochs": 1}, "proximal": {"proximal": 0.5},
}  # fmt: skip
CODECS: Mapping[str, dict[str, Any]] = {
    "dense": {"name": "dense"}, "hash": {"name": "hash", "buckets": 40}, "lowrank": {"name": "lowrank", "rank": 2},
    "sketch": {"name": "sketch", "rows": 3, "columns": 30, "kept": 20},
}  # fmt: skip


def spec_of(
    question: str = "two classes", model: str = "mlp", codec: str = "dense", more: Mapping[str, Any] | None = None,
    **training: Any,
) -> TaskSpec:  # fmt: skip
    features = [{"kind": "numeric", "name": name, "min": -9, "max": 9} for name in "abcdef"]
    return TaskSpec.model_validate({
        "name": "toy", "statistics": "exact", "data": {"features": features, **QUESTIONS[question]},
        "model": MODELS[model], "rounds": {"rounds": 9},
        "training": {"epochs": 4, "batch_size": 16, "learning_rate": 0.1, **training},
        "update": {"codec": CODECS[codec]}, "judging": {"metric": METRICS.get(question, "log_loss")}, **(more or {}),
    })  # fmt: skip


def rows_of(question: str, count: int = 75) -> Rows:
    random = np.random.default_rng(0)
    features = random.normal(size=(count, COLUMNS)).astype(np.float32)
    labels: dict[str, Labels] = {
        "two classes": random.integers(0, 2, count), "three classes": random.integers(0, 3, count),
        "amount": random.normal(1, 2, (count, 1)), "labels": random.integers(0, 2, (count, 2)).astype(np.float64),
        "survival": np.stack([random.uniform(0, 6, count), random.integers(0, 2, count)], axis=1),
    }  # fmt: skip
    return features, labels[question]


def updates(spec: TaskSpec, rows: Rows, guides: Guides | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Torch's, and NumPy's."""
    basis, base = Fold(spec, SEED).basis, model_of(spec).initial(3)
    given = spec, basis, base, *rows, 5
    of_torch, own = (learn(*given, device=device, guides=guides or Guides()) for device in ("cpu", NUMPY))
    return of_torch, own


def require_close(of_torch: NDArray[Any], own: NDArray[Any]) -> None:
    size = float(np.abs(of_torch).max())
    assert own.dtype == of_torch.dtype
    assert size > 1e-3
    assert float(np.abs(own - of_torch).max()) < ROUNDING * max(size, 1.0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_of_a_table_has_torchs_update(question: str, model: str) -> None:
    require_close(*updates(spec_of(question, model), rows_of(question)))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("training", TRAININGS)
def test_every_way_of_training_has_torchs_update(training: str, codec: str) -> None:
    require_close(*updates(spec_of(codec=codec, **TRAININGS[training]), rows_of("two classes")))


@pytest.mark.parametrize("question", ["two classes", "three classes"])
def test_guides_steer_as_in_torch(question: str) -> None:
    rows, held_out = rows_of(question), tuple(one[60:] for one in rows_of(question, 90))
    weights = np.array([0.5, 2.0, 1.0], np.float32)[: len(QUESTIONS[question]["classes"])]
    spec = spec_of(question, epochs=60, patience=2)
    steps: list[list[float]] = [[], []]
    for told, device in zip(steps, ("cpu", NUMPY), strict=True):
        guides = Guides(held_out=(held_out[0], held_out[1]), class_weights=weights)
        base = model_of(spec).initial(3)
        train(spec, base, *rows, 5, lambda done, of, loss: told.append(loss), device, guides)  # noqa: B023
    assert 10 < len(steps[0]) < 60 * 5
    np.testing.assert_allclose(steps[1], steps[0], rtol=1e-4)
    require_close(*updates(spec, rows, Guides((held_out[0], held_out[1]), None, weights)))
    corrected = spec_of(question, steps=6, epochs=1, control_variates=True)
    correction = np.random.default_rng(1).normal(0, 0.1, corrected.coordinates).astype(np.float32)
    require_close(*updates(corrected, rows, Guides(correction=correction)))


def test_it_repeats_itself_and_leaves_the_base() -> None:
    spec, rows = spec_of(), rows_of("two classes")
    base = model_of(spec).initial(3)
    before = base.copy()
    first, again = (train(spec, base, *rows, 5, device=NUMPY) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(base, before)
    assert not np.array_equal(train(spec, base, *rows, 6, device=NUMPY), first)


def test_training_that_runs_away_is_refused() -> None:
    spec, (features, _) = spec_of("amount", learning_rate=1e6), rows_of("amount")
    labels = np.full((len(features), 1), 9.0)
    with raises_fault(ModelError, "UpdateNotFinite"):
        train(spec, model_of(spec).initial(3), features * 1e6, labels, 5, device=NUMPY)


@pytest.mark.parametrize(
    ("why", "changes"),
    [
        ("differential privacy", {"more": {"statistics": "schema", "privacy": {"epsilon": 8.0, "max_grad_norm": 1.0}}}),
        ("mixed precision", {"precision": "mixed"}),
    ],
    ids=["noise", "mixed"],
)
def test_tasks_beyond_numpy_are_refused(why: str, changes: dict[str, Any]) -> None:
    spec = spec_of(**changes)
    with raises_fault(ModelError, "TorchNeeded", match=why):
        require_device(spec, NUMPY)
    with raises_fault(ModelError, "TorchNeeded"):
        train(spec, model_of(spec).initial(3), *rows_of("two classes"), 5, device=NUMPY)
    assert require_device(spec, None) == "cpu"


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from test_numpy_training import rows_of, spec_of
from consilium_client.hospital.node import HospitalNode
from consilium_client.evaluation.own import train_alone
from consilium_client.models import model_of
from consilium_client.models.training import require_device, train
spec, rows = spec_of(), rows_of("two classes")
found = train(spec, model_of(spec).initial(3), *rows, 5)
model_of(spec).evaluate(found, rows[0])
print(require_device(spec, None), sorted(name for name in HEAVY if sys.modules.get(name)))
"""
HEAVY = ("torch", "flwr", "opacus", "scipy", "sklearn", "pandas", "pyarrow", "duckdb", "grpc", "matplotlib")


def test_a_machine_without_torch_trains_and_imports_nothing_heavy() -> None:
    program = WITHOUT_TORCH.replace("HEAVY", repr(HEAVY))
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ran.stdout.strip() == "numpy []", ran.stderr
