"""The figures of membership inference that a hospital sees: the nearest ones, all from one measurement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.privacy.membership import (
    EPSILONS,
    FILE,
    MANY_STEPS,
    ONE_STEP,
    in_words,
    measured,
    nearest,
    noised,
    training_of,
)
from task_files import DATA

from bench.client import membership as bench

ROOT = Path(__file__).parents[2]

RESULTS = json.loads((ROOT / "bench/results/membership.json").read_text())
PRIVATE = "[privacy]\nepsilon = {}\nmax_grad_norm = 1.0\n"


def spec(more: str = "", model: str = 'name = "logistic"') -> TaskSpec:
    return parse_task_spec(f'name = "a task"\n{DATA}\n[model]\n{model}\n{more}'.encode())


def test_package_shows_what_was_measured() -> None:
    assert FILE.read_text(encoding="utf-8") == bench.packaged(RESULTS)
    assert list(measured()) == bench.shown(RESULTS)


@pytest.mark.parametrize("page", bench.DOCS)
def test_docs_show_what_was_measured(page: str) -> None:
    assert bench.DOCS[page](bench.shown(RESULTS)) in (ROOT / page).read_text()


def test_every_setting_was_measured_by_both_attackers() -> None:
    asked = [(one.model, one.training, one.rows, one.hospitals) for one in bench.settings()]
    for attack in ("projection", "regression"):
        rows = [row for row in RESULTS["rows"] if row["attack"] == attack]
        assert [(row["model"], row["training"], row["rows"], row["hospitals"]) for row in rows] == asked
    assert {rows for _, _, rows, _ in asked} == {8, 30, 100}
    assert {hospitals for _, _, _, hospitals in asked} == {1, 2, 3, 6}


@pytest.mark.parametrize("model", bench.MODELS)
def test_without_noise_members_are_found_and_with_it_hardly(model: str) -> None:
    """As the docs say in words, for few rows, and for a single hospital that does not conspire."""
    of = {(one.training, one.rows, one.hospitals): one for one in measured() if one.model == model}
    assert of[ONE_STEP, 8, 1].auc > 0.99
    for epsilon in EPSILONS:
        for (training, *_), one in of.items():
            assert training != noised(epsilon) or one.auc < 0.7


@pytest.mark.parametrize(
    ("more", "rows", "training"),
    [
        ("[training]\nepochs = 11\nbatch_size = 32\n", 30, ONE_STEP),
        ("[training]\nepochs = 12\nbatch_size = 32\n", 30, MANY_STEPS),
        ("[training]\nepochs = 6\nbatch_size = 32\n", 33, MANY_STEPS),
        (PRIVATE.format(0.5), 30, "epsilon 3"),
        (PRIVATE.format(3), 30, "epsilon 3"),
        (PRIVATE.format(3.1), 30, "epsilon 8"),
        (PRIVATE.format(8), 30, "epsilon 8"),
        (PRIVATE.format(8.1), 300, MANY_STEPS),
    ],
)
def test_training_of_counts_steps_or_noise_and_never_more_than_there_is(more: str, rows: int, training: str) -> None:
    assert training_of(spec(more), rows) == training


@pytest.mark.parametrize(
    ("rows", "hospitals", "found"),
    [(1, 1, (8, 1)), (29, 5, (8, 3)), (30, 6, (30, 6)), (99, 100, (30, 6)), (100, 6, (100, 3)), (10**6, 2, (100, 2))],
)
def test_nearest_has_no_more_rows_and_hospitals_where_fewer_were_measured(
    rows: int, hospitals: int, found: tuple[int, int]
) -> None:
    one = nearest(spec(), rows, hospitals)
    assert (one.rows, one.hospitals) == found
    assert one.model == "logistic"
    assert nearest(spec(model='name = "mlp"\nhidden = [4]'), rows, hospitals).model == "mlp"


def test_in_words_says_both_figures_and_that_nothing_bounds_more() -> None:
    together, alone = nearest(spec(), 40, 3), nearest(spec(), 40, 1)
    said = in_words(spec(), 40)
    assert said.startswith(
        "Of 40 rows like yours, an attacker who knows candidate rows tells members from others with AUC"
        f" {together.auc:.2f} (0.5 is a guess, 1 is certain). It finds {together.found:.0%} of them at 5% false alarms."
        f" If the others of your cohort conspire: AUC {alone.auc:.2f}, {alone.found:.0%} found. "
    )
    assert "Without [privacy] nothing bounds better attackers." in said
    assert "Epsilon bounds all other attackers" in in_words(spec(PRIVATE.format(8)), 40)
    assert "No epsilon above 8 was measured" in in_words(spec(PRIVATE.format(20)), 40)


def test_in_words_of_a_task_without_masks_shows_a_sum_of_one() -> None:
    open_ = spec("[update]\nmasked = false\n")
    assert f"AUC {nearest(open_, 40, 1).auc:.2f}" in in_words(open_, 40)
    assert "conspire" not in in_words(open_, 40)
