"""A finished model on labelled rows: metrics and calibration against scikit-learn's, intervals, and sites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.calibration
import sklearn.metrics
from consilium_chain.evaluations.measures import RESAMPLES, Calibration, Group
from consilium_chain.evaluations.report import EvaluationReport
from consilium_chain.tasks.questions import Classification, Metric
from consilium_client.errors import DataError
from consilium_client.evaluation.measuring import (
    BINS,
    LEAST_ROWS,
    MOST_SITES,
    calibration,
    measured,
    wilson,
)
from consilium_client.models import Evaluation
from consilium_client.models.objectives.classification import Classify
from consilium_core.kinds import of_kind
from consilium_operators.calibration_chart import draw
from consilium_operators.errors import OperatorError
from consilium_operators.evaluation import evaluate
from consilium_operators.model_folder import SavedModel, read_model
from hypothesis import given
from hypothesis import strategies as st
from model_driver import written
from numpy.typing import NDArray
from raised_faults import raises_fault
from scipy.stats import binomtest

TASK = """
name = "tested"
[data]
label = "sick"
classes = ["no", "yes"]
[[data.features]]
name = "age"
min = 0.0
max = 120.0
[model]
name = "logistic"
[judging]
metric = "auc"
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> SavedModel:
    return read_model(written(tmp_path_factory.mktemp("evaluated"), TASK))


YES_OR_NO = Classify(Classification("label", ("no", "yes")))


def calibrated(rows: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Labels that are drawn by their own probabilities."""
    random = np.random.default_rng(seed)
    likely = random.beta(2, 2, rows)
    return (random.random(rows) < likely).astype(np.int64), np.stack([1 - likely, likely], axis=1)


def found(probabilities: NDArray[np.float64]) -> Evaluation:
    return Evaluation(probabilities, np.zeros((len(probabilities), 1)))


def whole(report: EvaluationReport) -> Group:
    return of_kind(Group, report.all_rows)


REFERENCE: dict[Metric, Callable[[Any, Any], float]] = {
    "accuracy": lambda labels, likely: sklearn.metrics.accuracy_score(labels, likely >= 0.5),
    "auc": sklearn.metrics.roc_auc_score,
    "log_loss": sklearn.metrics.log_loss,
    "macro_f1": lambda labels, likely: sklearn.metrics.f1_score(labels, likely >= 0.5, average="macro"),
}


def test_metrics_equal_the_reference_for_all_rows_and_for_each_site(saved: SavedModel) -> None:
    labels, probabilities = calibrated(300, 1)
    sites = np.array(["Bern", "Basel", "Genf"])[np.arange(300) % 3]
    report = evaluate(saved, labels, found(probabilities), sites.tolist(), seed=0, resamples=20)
    assert (report.metric, report.sha256, [one.name for one in report.sites]) == (
        "auc", saved.index.sha256, ["Basel", "Bern", "Genf"],
    )  # fmt: skip
    for group in (whole(report), *report.sites):
        own = slice(None) if group.name is None else sites == group.name
        assert group.rows == len(labels[own])
        assert group.classes == {"no": int((labels[own] == 0).sum()), "yes": int((labels[own] == 1).sum())}
        for name, reference in REFERENCE.items():
            measure = group.measures[name]
            assert measure.value == pytest.approx(reference(labels[own], probabilities[own, 1]))
            assert measure.value is not None
            assert measure.low is not None
            assert measure.high is not None
            assert measure.low <= measure.value <= measure.high


@pytest.mark.parametrize(("seeds", "fewest"), [(25, 21), pytest.param(100, 87, marks=pytest.mark.deep)])
def test_an_interval_holds_the_truth_about_nineteen_times_in_twenty(seeds: int, fewest: int) -> None:
    """Labels are drawn by the model's own probabilities, so the truth of a row's accuracy and loss is known."""
    hits = {"accuracy": 0, "log_loss": 0}
    _, many = calibrated(200_000, 99)
    likely = many[:, 1]
    truth = {
        "accuracy": float(np.maximum(likely, 1 - likely).mean()),
        "log_loss": float(-(likely * np.log(likely) + (1 - likely) * np.log(1 - likely)).mean()),
    }
    for seed in range(seeds):
        found = measured(*calibrated(150, seed), YES_OR_NO, np.random.default_rng(seed), 200)
        for name, value in truth.items():
            one = found["accuracy" if name == "accuracy" else "log_loss"]
            assert one.low is not None
            assert one.high is not None
            hits[name] += one.low <= value <= one.high
    assert all(fewest <= count <= seeds for count in hits.values()), hits


def test_intervals_follow_from_the_seed(saved: SavedModel) -> None:
    labels, probabilities = calibrated(60, 2)
    first, again, other = (evaluate(saved, labels, found(probabilities), None, seed, 50) for seed in (4, 4, 5))
    assert first == again
    assert whole(first).measures != whole(other).measures
    assert EvaluationReport.model_validate_json(first.model_dump_json()) == first
    assert evaluate(saved, labels[:1], found(probabilities[:1]), None, 0).resamples == RESAMPLES


def test_rows_of_one_class_have_no_auc_and_few_rows_no_interval() -> None:
    labels, probabilities = calibrated(40, 3)
    of_one = measured(np.ones(40, np.int64), probabilities, YES_OR_NO, np.random.default_rng(0), 50)
    assert (of_one["auc"].value, of_one["auc"].low, of_one["auc"].high) == (None, None, None)
    assert of_one["accuracy"].low is not None
    few = measured(labels[: LEAST_ROWS - 1], probabilities[: LEAST_ROWS - 1], YES_OR_NO, np.random.default_rng(0), 50)
    assert few["accuracy"].value is not None
    assert few["accuracy"].low is None
    with raises_fault(DataError, "TooFewRows"):
        measured(labels[:0], probabilities[:0], YES_OR_NO, np.random.default_rng(0), 50)


def test_too_many_sites_are_refused(saved: SavedModel) -> None:
    labels, probabilities = calibrated(MOST_SITES + 1, 4)
    with raises_fault(OperatorError, "TooManySites", f"{MOST_SITES + 1} different"):
        evaluate(saved, labels, found(probabilities), [str(at) for at in range(MOST_SITES + 1)], 0, 1)


# --- calibration -----------------------------------------------------------------------------------------------------


def curve(labels: Any, likely: Any) -> Calibration:
    (found,) = calibration(labels, np.stack([1 - likely, likely], axis=1), Classification("label", ("no", "yes")))
    return found


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1) | st.sampled_from([0.1, 0.5, 0.3, 0.7])), min_size=1))
def test_the_curve_equals_the_reference(rows: list[tuple[int, float]]) -> None:
    labels, likely = np.array([one for one, _ in rows]), np.array([one for _, one in rows])
    found = curve(labels, likely)
    observed, predicted = sklearn.calibration.calibration_curve(labels, likely, n_bins=BINS, pos_label=1)
    assert found.class_name == "yes"
    assert [one.observed for one in found.bins] == pytest.approx(observed.tolist())
    assert [one.predicted for one in found.bins] == pytest.approx(predicted.tolist())
    assert sum(one.rows for one in found.bins) == len(rows)
    assert 0 <= found.error <= 1
    for one in found.bins:
        assert one.above <= one.predicted <= one.up_to + 1e-12
        assert one.low - 1e-9 <= one.observed <= one.high + 1e-9


@given(st.integers(1, 500), st.data())
def test_a_shares_interval_equals_the_reference(rows: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, rows))
    reference = binomtest(hits, rows).proportion_ci(method="wilson")
    assert wilson(hits / rows, rows) == pytest.approx((reference.low, reference.high), abs=1e-6)


def test_a_calibrated_model_has_less_error_than_a_boastful_one() -> None:
    labels, probabilities = calibrated(5_000, 6)
    likely = probabilities[:, 1]
    boastful = likely**3 / (likely**3 + (1 - likely) ** 3)
    assert curve(labels, likely).error < 0.03 < 0.1 < curve(labels, boastful).error


def test_each_of_many_classes_has_a_curve() -> None:
    random, asked = np.random.default_rng(7), Classification("label", ("a", "b", "c"))
    found = calibration(random.integers(0, 3, 90), random.dirichlet(np.ones(3), 90), asked)
    assert [one.class_name for one in found] == ["a", "b", "c"]


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    labels, probabilities = calibrated(50, 8)
    assert draw([curve(labels, probabilities[:, 1])]).startswith(b"\x89PNG\r\n\x1a\n")
