"""Questions other than classes: their metrics against other libraries', their losses against the papers' formulas."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import sklearn.metrics
import torch
from consilium_chain.tasks.questions import Multilabel, Regression, Survival
from consilium_client.errors import DataError, ModelError
from consilium_client.models.metrics import LEAST_PROBABILITY
from consilium_client.models.objectives.base import MOST_WORTH, Objective
from consilium_client.models.objectives.multilabel import MarkEach
from consilium_client.models.objectives.regression import Regress
from consilium_client.models.objectives.survival import Survive
from hypothesis import example, given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.utils import concordance_index
from raised_faults import raises_fault

AMOUNT = Regress(Regression(kind="regression", label="stay", min=0, max=100, mean=40, deviation=20))
EACH = MarkEach(Multilabel(kind="multilabel", labels=["fluid", "node", "mass"]))
BOUNDS = (30.0, 90.0, 180.0, 365.0)
TIME = Survive(Survival(kind="survival", time="days", event="died", bounds=list(BOUNDS)))
OBJECTIVES = [AMOUNT, EACH, TIME]

seeds = st.integers(0, 2**32 - 1)


def labels_of(objective: Objective, rows: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if objective is AMOUNT:
        return random.uniform(0, 100, (rows, 1))
    if objective is EACH:
        return random.integers(0, 2, (rows, 3)).astype(np.float64)
    # Few distinct times, also at bounds and beyond, so that ties are common.
    return (
        np.stack([random.choice([0, 10, 30, 60, 90, 200, 365, 400], rows), random.integers(0, 2, rows)], axis=1) * 1.0
    )


def outputs_of(objective: Objective, rows: int, seed: int) -> np.ndarray:
    width = {id(AMOUNT): 1, id(EACH): 3, id(TIME): len(BOUNDS)}[id(objective)]
    return np.random.default_rng([seed, 1]).normal(size=(rows, width)) * 2


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(rows=st.integers(1, 40), seed=seeds)
def test_torch_and_numpy_agree_on_predictions(objective: Objective, rows: int, seed: int) -> None:
    outputs = outputs_of(objective, rows, seed) * 10  # far out, where a careless exponent overflows
    found = objective.as_predictions(torch.from_numpy(outputs)).numpy()
    np.testing.assert_allclose(found, objective.predictions(outputs), rtol=1e-9, atol=1e-12)
    assert found.shape[1] == len(objective.answers)


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(rows=st.integers(1, 40), seed=seeds)
def test_a_losses_sum_is_of_rows_that_do_not_touch(objective: Objective, rows: int, seed: int) -> None:
    """DP-SGD bounds a row's part, so the sum over rows is the sum of each row's loss by itself."""
    outputs = torch.from_numpy(outputs_of(objective, rows, seed))
    targets = torch.from_numpy(objective.targets(labels_of(objective, rows, seed)))
    alone = [objective.loss(outputs[at : at + 1], targets[at : at + 1], "sum") for at in range(rows)]
    assert float(objective.loss(outputs, targets, "sum")) == pytest.approx(float(sum(alone)))
    assert float(objective.loss(outputs, targets, "mean")) == pytest.approx(float(sum(alone)) / rows)


@given(rows=st.integers(2, 60), seed=seeds)
def test_errors_of_amounts_equal_the_reference(rows: int, seed: int) -> None:
    labels, found = labels_of(AMOUNT, rows, seed), AMOUNT.predictions(outputs_of(AMOUNT, rows, seed))
    values = AMOUNT.measured(labels, found)
    assert values["squared_error"] == pytest.approx(sklearn.metrics.mean_squared_error(labels, found) / 20**2)
    assert values["absolute_error"] == pytest.approx(sklearn.metrics.mean_absolute_error(labels, found) / 20)
    assert values["r2"] == pytest.approx(sklearn.metrics.r2_score(labels, found))


def test_an_amounts_loss_is_its_squared_error_in_deviations() -> None:
    labels, outputs = labels_of(AMOUNT, 30, 3), outputs_of(AMOUNT, 30, 3) / 4
    loss = AMOUNT.loss(torch.from_numpy(outputs), torch.from_numpy(AMOUNT.targets(labels)), "mean")
    inside = AMOUNT.predictions(outputs)
    assert ((inside > 0) & (inside < 100)).all()
    assert float(loss) == pytest.approx(AMOUNT.measured(labels, inside)["squared_error"], rel=1e-6)


@given(rows=st.integers(1, 60), seed=seeds)
def test_metrics_of_labels_are_means_of_the_references(rows: int, seed: int) -> None:
    labels, found = labels_of(EACH, rows, seed), EACH.predictions(outputs_of(EACH, rows, seed))
    values = EACH.measured(labels, found)
    assert values["log_loss"] == pytest.approx(
        np.mean([sklearn.metrics.log_loss(labels[:, k], found[:, k], labels=[0, 1]) for k in range(3)])
    )
    assert values["accuracy"] == pytest.approx(np.mean((found >= 0.5) == labels))
    both = [k for k in range(3) if len(set(labels[:, k])) == 2]
    if not both:
        assert values["auc"] is None
        assert values["pr_auc"] is None
        return
    areas = [sklearn.metrics.roc_auc_score(labels[:, k], found[:, k]) for k in both]
    assert values["auc"] == pytest.approx(np.mean(areas))
    precisions = [sklearn.metrics.average_precision_score(labels[:, k], found[:, k]) for k in both]
    assert values["pr_auc"] == pytest.approx(np.mean(precisions))


# --- survival --------------------------------------------------------------------------------------------------------


def by_hand(time: float, event: float, chances: np.ndarray) -> float:
    """The likelihood of one row: the event within its interval, or all intervals survived that are known to be."""
    for interval, (start, end) in enumerate(pairwise([0.0, *BOUNDS])):
        before = chances[interval - 1] if interval else 1.0
        if event and (start < time <= end or (time == 0 and interval == 0)):
            return float(before - chances[interval])
        if not event and time < end:
            return float(before)
    return float(chances[-1])


@given(rows=st.integers(1, 40), seed=seeds)
@example(rows=12, seed=3_373_857_181)  # a row below the measure's least probability
def test_the_loss_of_times_is_the_likelihood_of_each_row(rows: int, seed: int) -> None:
    labels, outputs = labels_of(TIME, rows, seed), outputs_of(TIME, rows, seed)
    chances = TIME.predictions(outputs)
    likely = np.array([by_hand(time, event, own) for (time, event), own in zip(labels, chances, strict=True)])
    loss = TIME.loss(torch.from_numpy(outputs), torch.from_numpy(TIME.targets(labels)), "mean")
    assert float(loss) == pytest.approx(-np.mean(np.log(likely)), rel=1e-9)
    bounded = -np.mean(np.log(np.maximum(likely, LEAST_PROBABILITY)))
    assert TIME.measured(labels, chances)["log_loss"] == pytest.approx(bounded, rel=1e-6)


@given(rows=st.integers(2, 60), seed=seeds)
def test_the_concordance_is_harrells_on_intervals(rows: int, seed: int) -> None:
    labels, chances = labels_of(TIME, rows, seed), TIME.predictions(outputs_of(TIME, rows, seed))
    times, events = labels[:, 0], (labels[:, 1] == 1) & (labels[:, 0] <= BOUNDS[-1])
    # An interval's number is the time, and the number of intervals that a censored row survived.
    placed = np.where(events, np.searchsorted(BOUNDS, times) + 1, np.searchsorted(BOUNDS, times, side="right"))
    widths = np.diff([0.0, *BOUNDS])
    whole = np.hstack([np.ones((rows, 1)), chances])
    expected = ((whole[:, 1:] + whole[:, :-1]) / 2) @ widths
    found = TIME.measured(labels, chances)["c_index"]
    pairs = [(i, j) for i in range(rows) for j in range(rows)
             if events[i] and (placed[j] > placed[i] or (placed[j] == placed[i] and not events[j]))]  # fmt: skip
    if not pairs:
        assert found is None
        return
    assert found == pytest.approx(concordance_index(placed, expected, events), abs=1e-12)


@given(rows=st.integers(5, 60), seed=seeds)
def test_the_brier_score_is_grafs_at_each_bound(rows: int, seed: int) -> None:
    """Graf's formula with another library's Kaplan-Meier estimate of censoring. It counts an event at a time after
    censoring at it, so events come a little earlier here.
    """
    labels, chances = labels_of(TIME, rows, seed), TIME.predictions(outputs_of(TIME, rows, seed))
    times, events = labels[:, 0], labels[:, 1] == 1
    fitted = KaplanMeierFitter().fit(times - 1e-6 * events, ~events)

    def weight(time: float) -> float:
        seen = float(fitted.predict(time)) if time >= 0 else 1.0
        return 1 / seen if seen > 1e-12 else 0.0

    scores = []
    for bound, own in zip(BOUNDS, chances.T, strict=True):
        errors = [
            weight(time) * chance**2 if event and time <= bound else weight(bound) * (1 - chance) ** 2 * (time > bound)
            for time, event, chance in zip(times, events, own, strict=True)
        ]
        scores.append(np.mean(errors))
    widths = np.diff([0.0, *BOUNDS])
    assert TIME.measured(labels, chances)["brier"] == pytest.approx(float(scores @ widths) / BOUNDS[-1], rel=1e-6)


def test_a_better_order_of_times_has_more_worth() -> None:
    times = np.linspace(1, 364, 80)
    labels = np.stack([times, np.ones(80)], axis=1)
    hazards = np.where(times[:, None] <= np.array(BOUNDS), 2.0, -6.0)
    right, wrong = TIME.predictions(hazards), TIME.predictions(hazards[::-1].copy())
    for measure in TIME.measures.values():
        assert measure.worth(labels, right) > measure.worth(labels, wrong)
    nobody = np.stack([times, np.zeros(80)], axis=1)
    assert TIME.measures["c_index"].worth(nobody, right) == 0.5


# --- all -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_other_shapes_and_no_rows_are_refused(objective: Objective) -> None:
    labels, found = labels_of(objective, 4, 0), objective.predictions(outputs_of(objective, 4, 0))
    for measure in objective.measures.values():
        with raises_fault(DataError, "TooFewRows"):
            measure.of(labels[:0], found[:0])
        for wrong in (found[:3], np.hstack([found, found]), found[:, 0]):
            with raises_fault(ModelError, "ShapeMismatch"):
                measure.of(labels, wrong)
        with raises_fault(ModelError, "ShapeMismatch"):
            measure.of(labels[:, 0], found)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_score_exceeds_the_contracts_bound(objective: Objective) -> None:
    labels = labels_of(objective, 6, 1)
    for outputs in (
        np.full_like(outputs_of(objective, 6, 1), 1e300),
        np.full_like(outputs_of(objective, 6, 1), -1e300),
    ):
        found = objective.predictions(outputs)
        for measure in objective.measures.values():
            assert abs(measure.worth(labels, found)) <= MOST_WORTH
    close = np.full((6, 1), 5.0) + np.arange(6)[:, None] * 1e-9  # almost no spread, and a prediction far away
    assert AMOUNT.measures["r2"].worth(close, np.full((6, 1), 100.0)) == -MOST_WORTH
