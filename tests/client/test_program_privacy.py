"""Private training of programs: each row's gradient is its own, whatever the graph does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.models import model_of
from consilium_client.privacy.dp_sgd import Mechanism, train_privately
from consilium_client.programs import library
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.row_gradients import MOST_AT_ONCE, require_apart, take_row_gradients
from consilium_operators.exporting import export
from consilium_operators.weights import store_weights
from hypothesis import given, settings
from hypothesis import strategies as st
from program_modules import MIXING, MODULES, interpreted, made
from raised_faults import raises_fault
from torch import nn
from torch.nn.functional import cross_entropy

SILENT = 1e-12  # a noise multiplier that leaves the clipped sum as it is
APART = [name for name in MODULES if name not in MIXING]
TASK = """
name = "private"
[data]
label = "y"
classes = ["no", "yes"]
[[data.features]]
name = "a"
min = -9
max = 9
[[data.features]]
name = "b"
min = -9
max = 9
{section}
[training]
batch_size = 10
learning_rate = 1.0
[privacy]
epsilon = 8.0
max_grad_norm = {norm}
[money]
aggregator_bond = 10_000
"""


class Mixing(nn.Module):
    """Tells each row of all others."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(2, 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(rows - 100 * rows.sum(0))
        return logits


def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return cross_entropy(logits, labels, reduction="sum")


def task(folder: Path, module: nn.Module, norm: float) -> TaskSpec:
    if not (folder / "program").exists():
        export(module, torch.zeros(2, 2), folder / "program")
    section = store_weights(ArtifactStore(folder / "artifacts"), folder / "program")
    spec = parse_task_spec(TASK.format(section=section, norm=norm).encode())
    library.offer(ArtifactStore(folder / "artifacts"), spec)
    return spec


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("at_once", [MOST_AT_ONCE, 1], ids=["all at once", "one at a time"])
def test_each_rows_gradient_is_that_of_the_row_by_itself(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consilium_client.programs.row_gradients.MOST_AT_ONCE", at_once)
    _, found, rows, _ = made(name)
    program, labels = interpreted(found).train(), torch.arange(len(rows)) % 2
    summed = take_row_gradients(program, loss, rows, labels)
    expected, losses = list[list[torch.Tensor]](), list[float]()
    for row, label in zip(rows, labels, strict=True):
        program.zero_grad()
        own = loss(program(row[None]), label[None])
        own.backward()  # type: ignore[no-untyped-call]
        losses.append(float(own.detach()))
        expected.append([one.grad.clone() for one in program.trained if one.grad is not None])
    for at, one in enumerate(program.trained):
        together = torch.stack([own[at] for own in expected])
        np.testing.assert_allclose(one.grad_sample, together, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(float(summed), sum(losses), rtol=1e-5)


def test_a_step_that_draws_nobody_is_noise_alone(tmp_path: Path) -> None:
    spec = task(tmp_path, nn.Linear(2, 1), 1.0)
    assert spec.privacy is not None
    base = model_of(spec).initial(0)
    rows = np.ones((5, 2), np.float32), np.ones(5, np.int64)
    still = train_privately(spec, spec.privacy, Mechanism(SILENT, 1e-12, 3), base, *rows)
    moved = train_privately(spec, spec.privacy, Mechanism(1.0, 1e-12, 3), base, *rows)
    np.testing.assert_allclose(still, base, atol=1e-6)
    assert (moved != base).all()


def test_an_unclipped_step_without_noise_is_the_gradient_step(tmp_path: Path) -> None:
    spec = task(tmp_path, nn.Linear(2, 1), 1e6)
    assert spec.privacy is not None
    random = np.random.default_rng(0)
    features, labels = random.normal(size=(10, 2)).astype(np.float32), random.integers(0, 2, 10)
    base = model_of(spec).initial(0)
    error = 1 / (1 + np.exp(-(features @ base[:2] + base[2]))) - labels
    expected = base - np.append(features.T @ error, error.sum()) / 10
    trained = train_privately(spec, spec.privacy, Mechanism(SILENT, 1.0, 1), base, features, labels)
    np.testing.assert_allclose(trained, expected, rtol=1e-4)


ROW = st.tuples(st.floats(-1e3, 1e3, width=32), st.floats(-1e3, 1e3, width=32), st.integers(0, 1))


@pytest.fixture(scope="module")
def mixing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mixing")


@given(ROW, st.sampled_from([0.1, 1.0, 5.0]))
@settings(max_examples=30)
def test_even_a_program_that_mixes_rows_moves_a_step_by_no_more_than_the_norm(
    mixing: Path, row: tuple[float, float, int], norm: float
) -> None:
    """With the batch of all rows and noise next to none, with one row more."""
    spec = task(mixing, Mixing(), norm)
    assert spec.privacy is not None
    random = np.random.default_rng(1)
    features, labels = random.normal(size=(10, 2)).astype(np.float32), random.integers(0, 2, 10)
    base, mechanism = model_of(spec).initial(0), Mechanism(SILENT, 1.0, 1)
    more = np.vstack([features, np.array([row[:2]], np.float32)]), np.append(labels, row[2])
    both = [train_privately(spec, spec.privacy, mechanism, base, *rows) for rows in ((features, labels), more)]
    assert np.linalg.norm(both[1].astype(np.float64) - both[0]) <= norm / 10 * (1 + 1e-3)


def test_a_program_that_mixes_rows_is_refused_by_trial(mixing: Path, tmp_path: Path) -> None:
    with raises_fault(ProgramError, "RowsMixed", "without batch norms"):
        model_of(task(mixing, Mixing(), 1.0)).require_apart()
    model_of(task(tmp_path, nn.Linear(2, 1), 1.0)).require_apart()
    norm = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 1))
    with raises_fault(ProgramError, "NotExportable", r"cannot compute 1 row\(s\)"):
        export(norm, torch.zeros(2, 2), tmp_path / "norm")


@pytest.mark.parametrize("name", [name for name in APART if MODULES[name][1].is_floating_point()])
def test_programs_that_keep_rows_apart_are_not_refused(name: str) -> None:
    require_apart(interpreted(made(name)[1]))


class Telling(nn.Module):
    """Cannot be computed on a row beyond 5, and has an infinite gradient at a row of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.table = nn.Linear(2, 1), nn.Embedding(6, 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(rows) / rows.abs().sum(1, keepdim=True) + self.table(rows[:, 0].abs().long())
        return logits


@pytest.mark.parametrize("row", [(0.0, 0.0), (9.0, 1.0)], ids=["infinite", "not computed"])
def test_no_row_makes_training_fail(row: tuple[float, float], tmp_path: Path) -> None:
    export(Telling(), torch.ones(2, 2), tmp_path / "program")
    spec = task(tmp_path, Telling(), 1.0)
    assert spec.privacy is not None
    features, labels = np.ones((4, 2), np.float32), np.array([0, 1, 1, 1])
    base, mechanism = model_of(spec).initial(0), Mechanism(SILENT, 1.0, 1)
    without = train_privately(spec, spec.privacy, mechanism, base, features, labels)
    more = np.vstack([features, np.array([row], np.float32)]), np.append(labels, 1)
    with_it = train_privately(spec, spec.privacy, mechanism, base, *more)
    assert np.isfinite(with_it).all()
    assert np.linalg.norm(with_it * 5 - without * 4 - base) <= 1 + 1e-3  # steps divide by 5 and by 4 rows
