"""DP-SGD: what it costs is what Opacus says of the same steps, what a row can do is bounded, and its noise is noise."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import PrivacySpec
from consilium_client.errors import BudgetError
from consilium_client.models import Vector, model_of
from consilium_client.models.metrics import accuracy
from consilium_client.privacy.dp_sgd import Mechanism, epsilon, plan, train_privately
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus import PrivacyEngine
from opacus.accountants import RDPAccountant
from opacus.optimizers import DPOptimizer
from raised_faults import raises_fault
from scipy.stats import kstest
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SILENT = 1e-12  # a noise multiplier that leaves the clipped sum as it is


def spec_of(
    model: dict[str, Any] | None = None, rounds: int = 3, privacy: dict[str, float] | None = None, **training: Any
) -> tuple[TaskSpec, PrivacySpec]:
    spec = TaskSpec.model_validate(
        {
            "name": "toy",
            "data": {
                "features": [{"kind": "numeric", "name": name, "min": -9, "max": 9} for name in ("a", "b")],
                "label": "y",
                "classes": ["no", "yes"],
            },
            "model": model or {"name": "logistic"},
            "training": {"epochs": 2, "batch_size": 16, "learning_rate": 0.1, **training},
            "privacy": {"epsilon": 8.0, "max_grad_norm": 1.0, **(privacy or {})},
            "rounds": {"rounds": rounds},
            "money": {"aggregator_bond": 10_000},
        }
    )
    assert spec.privacy is not None
    return spec, spec.privacy


def line(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    features = np.random.default_rng(seed).normal(size=(rows, 2)).astype(np.float32)
    return features, (features[:, 0] > features[:, 1]).astype(np.int64)


def test_the_cost_is_that_of_opacus_engine_after_the_same_training() -> None:
    """160 rows in batches of 16, three rounds of two epochs: what its own engine makes of a model of the same kind."""
    spec, privacy = spec_of()
    features, labels = line(160)
    mechanism = plan(spec, privacy, 160)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no secure mode; hooks on the first layer
        engine = PrivacyEngine(accountant="rdp")
        module = nn.Linear(2, 1)
        data = TensorDataset(torch.from_numpy(features), torch.from_numpy(labels).float().unsqueeze(1))
        module, optimizer, loader = engine.make_private(
            module=module, optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            data_loader=DataLoader(data, batch_size=16), noise_multiplier=mechanism.noise_multiplier,
            max_grad_norm=privacy.max_grad_norm,
        )  # fmt: skip
        for _ in range(spec.rounds.rounds * spec.training.epochs):
            for rows, targets in loader:
                optimizer.zero_grad()
                nn.BCEWithLogitsLoss()(module(rows), targets).backward()
                optimizer.step()
        theirs = engine.get_epsilon(privacy.delta)
    ours = epsilon([mechanism] * spec.rounds.rounds, privacy.delta)
    assert ours == pytest.approx(theirs, rel=0, abs=1e-9)
    assert 7.9 < ours <= 8.0


def test_training_takes_the_steps_it_is_charged_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by Opacus itself, in the optimiser that trains."""
    spec, privacy = spec_of(batch_size=3)
    accountant, mechanism = RDPAccountant(), Mechanism(1.5, 3 / 20, 14)
    made = DPOptimizer.__init__

    def counted(self: DPOptimizer, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **named)
        self.attach_step_hook(accountant.get_optimizer_hook_fn(mechanism.sample_rate))

    monkeypatch.setattr(DPOptimizer, "__init__", counted)
    train_privately(spec, privacy, mechanism, np.zeros(3, np.float32), *line(20))
    assert accountant.history == [(1.5, 3 / 20, 14)]
    assert epsilon([mechanism], 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=0, abs=1e-9)


@pytest.mark.parametrize(("rows", "allowed"), [(1, 8.0), (16, 0.5), (17, 8.0), (400, 3.0)])
def test_a_plan_ends_at_the_tasks_epsilon(rows: int, allowed: float) -> None:
    spec, privacy = spec_of(privacy={"epsilon": allowed})
    mechanism = plan(spec, privacy, rows)
    assert mechanism.sample_rate == min(1.0, 16 / rows)
    assert mechanism.steps == 2 * math.ceil(rows / 16)
    assert 0.99 * allowed < epsilon([mechanism] * 3, privacy.delta) <= allowed
    assert epsilon([mechanism] * 4, privacy.delta) > allowed


def test_an_epsilon_that_no_noise_reaches_is_named() -> None:
    spec, privacy = spec_of(privacy={"epsilon": 0.01})
    with raises_fault(BudgetError, "EpsilonUnreachable") as caught:
        plan(spec, privacy, 16)
    assert (caught.value.values["epsilon"], caught.value.values["delta"], caught.value.values["steps"]) == (
        0.01,
        1e-5,
        6,
    )


ROW = st.tuples(st.floats(-1e6, 1e6, width=32), st.floats(-1e6, 1e6, width=32), st.integers(0, 1))


@given(ROW, st.sampled_from([0.1, 1.0, 5.0]), st.sampled_from(["logistic", "mlp"]))
@settings(max_examples=40)
def test_no_row_moves_a_step_by_more_than_the_norm(row: tuple[float, float, int], norm: float, name: str) -> None:
    """With the batch of all rows and noise next to none, with one row more."""
    model = {"name": "mlp", "hidden": [4]} if name == "mlp" else {"name": name}
    spec, privacy = spec_of(model, privacy={"max_grad_norm": norm}, batch_size=10, learning_rate=1.0)
    features, labels = line(10)
    base, mechanism = model_of(spec).initial(0), Mechanism(SILENT, 1.0, 1)
    one_more = np.vstack([features, np.array([row[:2]], np.float32)]), np.append(labels, row[2])
    both = [train_privately(spec, privacy, mechanism, base, *rows) for rows in ((features, labels), one_more)]
    assert np.linalg.norm(both[1].astype(np.float64) - both[0]) <= norm / 10 * (1 + 1e-3)


def test_an_unclipped_step_without_noise_is_the_gradient_step() -> None:
    features, labels = line(10)
    spec, privacy = spec_of(privacy={"max_grad_norm": 1e6}, batch_size=10, learning_rate=0.5, weight_decay=0.1)
    base = np.array([0.3, -0.2, 0.1], dtype=np.float32)
    error = 1 / (1 + np.exp(-(features @ base[:2] + base[2]))) - labels
    gradient = np.append(features.T @ error, error.sum()) / 10
    expected = base - 0.5 * (gradient + 0.1 * base)
    trained = train_privately(spec, privacy, Mechanism(SILENT, 1.0, 1), base, features, labels)
    np.testing.assert_allclose(trained, expected, rtol=1e-4)


def test_steps_that_draw_nobody_are_gaussian_noise_of_the_deviation_charged_for() -> None:
    """With one row, drawn with a chance of 10^-12; a thousand parameters, nine steps."""
    spec, privacy = spec_of({"name": "mlp", "hidden": [250]}, privacy={"max_grad_norm": 0.7}, batch_size=1)
    base = model_of(spec).initial(0)
    trained = train_privately(spec, privacy, Mechanism(2.5, 1e-12, 9), base, *line(1))
    deviation = 0.1 * 2.5 * 0.7 * math.sqrt(9)  # learning rate, noise, norm, over a batch of one
    assert kstest((trained.astype(np.float64) - base) / deviation, "norm").pvalue > 1e-6


def test_rows_are_drawn_with_the_rate_charged_for() -> None:
    """Each of 400 equal rows moves the bias by a half, so its change gives the number of drawn rows."""
    spec, privacy = spec_of(privacy={"max_grad_norm": 1.0}, batch_size=400, learning_rate=400.0)
    features, labels = np.zeros((400, 2), np.float32), np.zeros(400, np.int64)
    mechanism, drawn = Mechanism(SILENT, 0.3, 1), []
    for _ in range(100):
        trained = train_privately(spec, privacy, mechanism, np.zeros(3, np.float32), features, labels)
        drawn.append(-2 * float(trained[2]))
    np.testing.assert_allclose(drawn, np.rint(drawn), atol=1e-2)
    variance = 400 * 0.3 * 0.7
    assert abs(np.mean(drawn) - 120) < 6 * math.sqrt(variance / 100)
    assert 0.4 * variance < np.var(drawn) < 2.2 * variance  # by themselves: a fixed number of rows has none


def test_no_seed_repeats_the_noise() -> None:
    spec, privacy = spec_of()
    mechanism = Mechanism(1.0, 0.5, 1)

    def trained() -> Vector:
        torch.manual_seed(0)
        np.random.seed(0)
        return train_privately(spec, privacy, mechanism, np.zeros(3, np.float32), *line(32))

    assert not np.isclose(trained(), trained()).any()


def test_it_learns_where_rows_are_many() -> None:
    spec, privacy = spec_of(batch_size=500, learning_rate=2.0, epochs=5)
    features, labels = line(5000)
    base = np.zeros(3, np.float32)
    trained = train_privately(spec, privacy, plan(spec, privacy, 5000), base, features, labels)
    assert accuracy(labels, model_of(spec).evaluate(trained, features).predictions) > 0.95
