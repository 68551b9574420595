"""The demo's defaults, measured: federated near pooled and above local, thresholds that part honest from harmful."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from consilium_client.data.standardise import public_sums
from consilium_client.models import model_of
from consilium_client.models.metrics import log_loss
from consilium_client.models.training import train
from consilium_lab.demo.datasets import DemoData, deal_heart, deal_wdbc, examples_of
from consilium_lab.demo.references import local_only, over_the_wire, pooled, row_weight, simulate_fedavg
from consilium_lab.demo.task_file import task_spec

HEART = Path(__file__).resolve().parents[3] / "shared" / "data" / "heart"
needs_heart = pytest.mark.skipif(not HEART.is_dir(), reason=f"no UCI heart files at {HEART}")


def _wdbc(seed: int) -> DemoData:
    return deal_wdbc(6, 5, seed)


def _heart(seed: int) -> DemoData:
    return deal_heart(HEART, 5, seed)


both = pytest.mark.parametrize("deal", [_wdbc, pytest.param(_heart, marks=needs_heart)])


@pytest.mark.parametrize("seed", range(5))
def test_simulate_fedavg_on_wdbc_is_near_pooled_and_above_local(seed: int) -> None:
    data = _wdbc(seed)
    spec = task_spec(data)
    together, alone, run = pooled(data, spec, seed), local_only(data, spec, seed), simulate_fedavg(data, spec, seed)
    assert len(run.history) == spec.rounds.rounds + 1
    assert abs(run.history[-1]["accuracy"] - together["accuracy"]) <= 0.02
    assert run.history[-1]["accuracy"] > alone["accuracy"]
    assert run.history[-1]["log_loss"] < alone["log_loss"]


@needs_heart
@pytest.mark.parametrize("seed", range(5))
def test_simulate_fedavg_on_heart_is_near_pooled(seed: int) -> None:
    data = _heart(seed)
    spec = task_spec(data)
    together, alone, run = pooled(data, spec, seed), local_only(data, spec, seed), simulate_fedavg(data, spec, seed)
    assert abs(run.history[-1]["accuracy"] - together["accuracy"]) <= 0.02
    assert abs(run.history[-1]["auc"] - together["auc"]) <= 0.02
    assert run.history[-1]["auc"] > alone["auc"]


@both
def test_defaults_leave_room_for_honest_updates(deal: Callable[[int], DemoData]) -> None:
    """Neither clip nor range touches an honest update, and rounding to the task's bits changes no figure."""
    data = deal(0)
    spec = task_spec(data)
    rounded, exact = simulate_fedavg(data, spec, 0), simulate_fedavg(data, spec, 0, quantised=False)
    assert rounded.largest_coordinate < 0.7 * spec.update.value_range
    assert rounded.longest_update < 0.7 * spec.update.clip_norm
    for name, value in exact.history[-1].items():
        assert rounded.history[-1][name] == pytest.approx(value, abs=5e-3)


@both
@pytest.mark.parametrize("seed", range(5))
def test_thresholds_part_honest_from_harmful(deal: Callable[[int], DemoData], seed: int, tmp_path: Path) -> None:
    """Cohorts of one, every round: honest medians reach the floor; flipped labels and updates times -10 are slashed."""
    data = deal(seed)
    spec = task_spec(data)

    hospitals, voters = (examples_of(frames, data.schema) for frames in (data.hospitals, data.held_out))
    model = model_of(spec)
    sums = public_sums(data.schema)
    base = model.initial(seed)

    def improvement(update: np.ndarray) -> float:
        models = (base, (base + over_the_wire(update, spec)).astype(np.float32))
        before, after = (
            [log_loss(v.labels, model.evaluate(m, model.inputs(v, sums)).predictions) for v in voters] for m in models
        )
        return median(b - a for b, a in zip(before, after, strict=True))

    for round_number in range(spec.rounds.rounds):
        updates = []
        for hospital in hospitals:
            rows = model.inputs(hospital, sums)
            honest = train(spec, base, rows, hospital.labels, round_number).astype(np.float64) - base
            flipped = train(spec, base, rows, 1 - hospital.labels, round_number).astype(np.float64) - base
            assert improvement(honest) >= spec.judging.accept_floor
            assert improvement(flipped) < spec.judging.harmful_below
            assert improvement(-10 * honest) < spec.judging.harmful_below
            updates.append(honest)
        weights = [row_weight(hospital.rows, spec) for hospital in hospitals]
        base = (base + np.average(updates, axis=0, weights=weights)).astype(np.float32)


def test_row_weight_steps_and_cap() -> None:
    spec = task_spec(_wdbc(0))
    assert [row_weight(rows, spec) for rows in (0, 1, 10, 11, 158, 10**6)] == [1, 1, 1, 2, 16, spec.rounds.max_weight]
