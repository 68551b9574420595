"""Chances that a committee rejects or slashes honest cohorts: the arithmetic, and the measurement behind it."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.fairness import Chances, chances, fair_thresholds, noise, noticed_harm, unfairness
from consilium_chain.tasks.judging_spec import JudgingSpec
from consilium_chain.tasks.questions import Metric
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_lab.result_files import rows_again
from task_files import DATA

RESULT = Path(__file__).parents[2] / "bench" / "results" / "fair_judging.json"
AMOUNTS_MEASURED = RESULT.with_name("fair_amounts.json")
OTHERS: tuple[Metric, ...] = ("auc", "accuracy", "macro_f1")


def judging(metric: Metric = "auc", rows: int = 200, of_class: int = 20, **other: Any) -> JudgingSpec:
    return JudgingSpec(metric=metric, least_rows=rows, least_of_class=of_class, **other)


def of(**other: Any) -> Chances:
    found = chances(judging(**other))
    assert found is not None
    return found


def spec_of(lines: str) -> TaskSpec:
    return parse_task_spec(f'name = "rare"\n{DATA}\n[model]\nname = "logistic"\n[judging]\n{lines}\n'.encode())


@pytest.mark.parametrize("metric", OTHERS)
def test_more_rows_seats_and_room_make_judging_fairer(metric: Metric) -> None:
    usual = of(metric=metric)
    assert of(metric=metric, rows=2_000, of_class=200).rejected < usual.rejected
    assert of(metric=metric, of_class=90).rejected != usual.rejected
    assert of(metric=metric, accept_floor=-0.02).rejected < usual.rejected
    assert of(metric=metric, harmful_below=-0.1).slashed < usual.slashed
    five, nine = ({"max_voters": seats, "seats": seats} for seats in (5, 9))
    assert of(metric=metric, **nine).rejected < of(metric=metric, **five).rejected


def test_one_voter_rejects_by_its_own_noise_and_three_by_their_median() -> None:
    found = noise(judging())
    assert found is not None
    alone = of(max_voters=1, seats=1)
    whole = math.hypot(found.voter, found.common)
    assert alone.rejected == pytest.approx(NormalDist().cdf(-0.01 / whole), abs=1e-3)
    assert alone.slashed == pytest.approx(NormalDist().cdf(-0.05 / whole), abs=1e-3)
    random = np.random.default_rng(0)
    scores = found.common * random.standard_normal((200_000, 1)) + found.voter * random.standard_normal((200_000, 3))
    three = of(max_voters=3, seats=3)
    assert three.rejected == pytest.approx(float(np.mean(np.median(scores, axis=1) < -0.01)), abs=0.004)


def test_a_committees_size_is_drawn_and_its_lower_median_counts() -> None:
    """The lower of the middle two of four is a harsher judge than the middle of five."""
    four, five = of(max_voters=5, seats=4, min_reveals=1), of(max_voters=5, seats=5)
    assert four.rejected > five.rejected
    assert of(max_voters=5, seats=4, min_reveals=5).rejected == pytest.approx(five.rejected)


@pytest.mark.parametrize("metric", OTHERS)
@pytest.mark.parametrize(("rows", "of_class"), [(50, 5), (200, 10), (1_000, 300)])
def test_proposed_thresholds_are_fair_and_no_higher_ones_are(metric: Metric, rows: int, of_class: int) -> None:
    fair = fair_thresholds(judging(metric, rows, of_class))
    assert fair is not None
    floor, harmful = fair
    assert of(metric=metric, rows=rows, of_class=of_class, accept_floor=floor, harmful_below=harmful).are_fair
    if floor < -0.01:
        assert not of(metric=metric, rows=rows, of_class=of_class, accept_floor=floor + 0.01, harmful_below=-1).are_fair
    text = f'metric = "{metric}"\nleast_rows = {rows}\nleast_of_class = {of_class}\n'
    assert unfairness(spec_of(f"{text}accept_floor = {floor}\nharmful_below = {harmful}")) == ""


def test_what_is_refused_says_the_way_out() -> None:
    assert unfairness(spec_of("")) == ""
    assert "set least_rows and least_of_class" in unfairness(spec_of('metric = "auc"'))
    assert "set least_rows and least_of_class" in unfairness(spec_of('metric = "auc"\nleast_rows = 40'))
    assert "set least_of_class to 5 or more" in unfairness(
        spec_of('metric = "auc"\nleast_rows = 150\nleast_of_class = 4\naccept_floor = -1.0\nharmful_below = -2.0')
    )
    said = unfairness(spec_of('metric = "auc"\nleast_rows = 150\nleast_of_class = 11'))
    floor, harmful = fair_thresholds(judging(rows=150, of_class=11)) or (0.0, 0.0)
    assert f"set accept_floor = {floor:g} and harmful_below = {harmful:g}" in said
    assert "judge by log_loss" in said


def amounts(metric: str, lines: str = "") -> TaskSpec:
    question = 'question = { kind = "regression", label = "stay", min = 0, max = 60, mean = 20, deviation = 12 }'
    head = f'name = "stays"\n[data]\n{question}\nfeatures = [{{ name = "age", min = 0, max = 100 }}]\n'
    return parse_task_spec(f'{head}[model]\nname = "logistic"\n[judging]\nmetric = "{metric}"\n{lines}'.encode())


@pytest.mark.parametrize("metric", ["squared_error", "absolute_error", "r2"])
def test_default_thresholds_are_refused_for_amounts_and_those_that_are_named_pass(metric: Metric) -> None:
    said = unfairness(amounts(metric))
    floor, harmful = fair_thresholds(amounts(metric).judging) or (0.0, 0.0)
    assert f"set accept_floor = {floor:g} and harmful_below = {harmful:g}" in said
    assert unfairness(amounts(metric, f"accept_floor = {floor}\nharmful_below = {harmful}\n")) == ""


def test_amounts_and_times_were_measured_to_be_fair_by_the_checks_thresholds() -> None:
    for row in json.loads(AMOUNTS_MEASURED.read_text())["rows"]:
        by = "" if row["floor"] is None else "_proposed"
        if (row["terms"], by) != ("drafted", ""):  # long steps, for which a draft has lower thresholds
            assert (row[f"rejected{by}"] < 0.05, row[f"slashed{by}"] < 0.01) == (True, True), row


def test_lower_thresholds_notice_less_harm_and_say_so() -> None:
    refused = judging(rows=200, of_class=20)
    floor, harmful = fair_thresholds(refused) or (0.0, 0.0)
    harms = [noticed_harm(one) for one in (refused, judging(accept_floor=floor, harmful_below=harmful))]
    assert None not in harms
    said = unfairness(spec_of('metric = "auc"\nleast_rows = 200\nleast_of_class = 20'))
    assert f"from a loss of {harms[1]:g} on, not {harms[0]:g}" in said
    found = noise(refused)
    assert found is not None
    random = np.random.default_rng(0)
    draws = found.common * random.standard_normal((100_000, 1)) + found.voter * random.standard_normal((100_000, 3))
    three = judging(max_voters=3, seats=3)
    harm = noticed_harm(three) or 0.0
    rejected = [float(np.mean(np.median(draws - one, axis=1) < -0.01)) for one in (harm - 0.01, harm)]
    assert rejected[0] < 0.955
    assert rejected[1] > 0.945
    assert noticed_harm(JudgingSpec()) is None


def test_rows_of_one_class_alone_are_judged_as_if_halves() -> None:
    assert of(metric="accuracy", rows=40, of_class=40) == of(metric="accuracy", rows=40, of_class=20)


def test_a_large_committee_is_judged_in_no_time() -> None:
    for seats in (15, 256):
        started = time.process_time()
        assert fair_thresholds(judging(max_voters=256, seats=seats, min_reveals=seats // 2)) is not None
        assert time.process_time() - started < 5


def measured() -> list[dict[str, Any]]:
    return rows_again(json.loads(RESULT.read_text())["rows"])


def test_the_check_lets_pass_only_what_was_measured_to_be_fair() -> None:
    rows = measured()
    assert {row["metric"] for row in rows} >= {*OTHERS, "log_loss", "brier", "pr_auc"}
    for row in rows:
        if row["check"] == "fair":
            assert (row["rejected"] < 0.05, row["slashed"] < 0.01) == (True, True), row
        if row["floor"] is not None:
            assert (row["rejected_proposed"] < 0.05, row["slashed_proposed"] < 0.01) == (True, True), row


def test_measured_thresholds_are_those_that_the_check_proposes() -> None:
    for row in measured():
        if row["check"] == "refused" and row["terms"] == "defaults" and row["floor"] is not None:
            fair = fair_thresholds(judging(row["metric"], row["rows"], row["of_class"]))
            assert fair == (row["floor"], row["harmful"])


def test_calibration_error_is_refused_where_chance_rejects_by_it() -> None:
    """Default thresholds always; a draft's, below 200 rows of a voter."""
    rows = [one for one in measured() if one["metric"] == "calibration_error"]
    assert max(row["rejected"] for row in rows) > 0.3
    for row in rows:
        assert row["check"] == ("fair" if row["terms"] == "drafted" and row["rows"] >= 200 else "refused"), row
