"""One task in several forms: what is played, what is behind, and what is proposed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import consilium
import numpy as np
import pandas as pd
import pytest
from command_line import CommandLine, done, refused
from command_line import consilium as command
from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_lab.demo.datasets import deal_wdbc, examples_of
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_lab.errors import LabError
from consilium_lab.simulation.forms import forms, taking_part
from consilium_lab.simulation.grid import (
    ASSUMED,
    NEAR,
    GridRow,
    Play,
    at_prices,
    averages,
    frontier,
    proposed,
    simulate_grid,
)
from consilium_zk.constants import BYTES_PER_BLOB
from hypothesis import given
from hypothesis import strategies as st
from patients import patients
from raised_faults import raises_fault
from task_files import SALE, of_few_rounds

__all__ = ["command"]

FEATURES = "\n".join(f'[[data.features]]\nname = "x{place}"\nmin = 0\nmax = 1' for place in range(60))
WIDE = (
    f'name = "wide"\n[data]\nlabel = "y"\nclasses = ["no", "yes"]\n{FEATURES}\n[model]\nname = "mlp"\nhidden = [16]\n'
)


def test_each_combination_is_a_task_file_of_its_own() -> None:
    spec = parse_task_spec(WIDE.encode())
    found = forms(spec, ["codec", "bits"], 4)
    codecs = {"dense", "hash 1/10", "hash 1/50", "hash 1/100", "lowrank 1", "lowrank 4", "dct 1/16", "sketch 1/10"}
    assert {one.words["codec"] for one in found} == codecs
    assert len(found) == 3 * len(codecs)
    for one in found:
        form = parse_task_spec(one.task_file.encode())
        assert (form.update.bits, form.data, form.model) == (int(one.words["bits"]), spec.data, spec.model)
        assert (one.hospitals, one.dropouts) == (4, 0)
        kind, _, part = one.words["codec"].partition(" ")
        assert form.update.codec.name == kind
        if kind == "hash":
            assert form.coordinates == spec.parameters // int(part[2:])
        if kind == "sketch":  # numbers of some 30 values each
            assert (form.update.value_range, form.update.clip_norm) == (6 * spec.update.value_range, 24.0)


def test_each_form_of_a_model_that_may_be_sold_keeps_the_terms_at_its_end() -> None:
    spec = parse_task_spec((WIDE + SALE).encode())
    for one in forms(spec, ["epsilon", "epochs"], 4):
        assert parse_task_spec(one.task_file.encode()).sale == spec.sale


def test_what_saves_nothing_or_fits_no_rule_is_no_form() -> None:
    small = parse_task_spec(WIDE.replace(FEATURES, FEATURES[: FEATURES.index("[[", 5)]).encode())
    # Of 49 parameters a fiftieth is no number.
    codecs = [one.words["codec"] for one in forms(small, ["codec"], 4)]
    assert codecs == ["dense", "hash 1/10", "lowrank 1", "lowrank 4"]
    exact = parse_task_spec(f'statistics = "exact"\n{WIDE}'.encode())
    assert [one.words["epsilon"] for one in forms(exact, ["epsilon"], 4)] == ["none"]
    with raises_fault(LabError, "GridUnknown", match="codec, outer, epochs, bits, epsilon, hospitals, dropouts"):
        forms(small, ["codec", "colour"], 4)


@given(st.integers(3, 40), st.integers(3, 40), st.integers(1, 5), st.booleans())
def test_fewer_hospitals_are_all_half_and_the_fewest_that_the_task_allows(
    hospitals: int, least: int, cohorts: int, given_more: bool
) -> None:
    least = min(least, hospitals)
    most = max(hospitals, 3 * cohorts) + 10 * given_more
    terms = f"[rounds]\nmin_hospitals = {least}\nmax_hospitals = {most}\ncohorts = {cohorts}\n"
    spec = parse_task_spec((WIDE + terms).encode())
    found = forms(spec, ["hospitals"], hospitals)
    counts = [one.hospitals for one in found]
    assert counts == sorted({hospitals, max((hospitals + 1) // 2, least), least}, reverse=True)
    for one in found:
        form = parse_task_spec(one.task_file.encode())  # all of them are valid
        assert form.rounds.max_hospitals == one.hospitals >= form.rounds.min_hospitals == least
        assert form.rounds.cohorts == min(cohorts, one.hospitals // 3)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.data())
def test_those_who_take_part_are_spaced_evenly_from_the_largest_on(rows: list[int], data: st.DataObject) -> None:
    named = {f"h{index}": count for index, count in enumerate(rows)}
    count = data.draw(st.integers(1, len(rows)))
    chosen = taking_part(named, count)
    assert len(set(chosen)) == len(chosen) == count
    assert chosen == [name for name in named if name in chosen]
    assert max(named[name] for name in chosen) == max(rows)
    by_rows = sorted(named, key=lambda name: -named[name])
    places = sorted(by_rows.index(name) for name in chosen)
    gaps = {after - before for before, after in itertools.pairwise([*places, len(rows)])}
    assert max(gaps) - min(gaps) <= 1


def test_dropouts_change_no_task_file() -> None:
    spec = parse_task_spec(WIDE.encode())
    found = forms(spec, ["bits", "dropouts"], 4, dropouts=0.2)
    assert [one.dropouts for one in found] == [0.0, 0.1, 0.3] * 3
    assert len({one.task_file for one in found}) == 3
    assert {one.dropouts for one in forms(spec, ["bits"], 4, dropouts=0.2)} == {0.2}


def row(metric: float, size: int, accepted: float = 1.0, dropouts: float = 0.0) -> GridRow:
    return GridRow(
        {"codec": str(size)}, {"auc": metric}, size, 1, 1, 1, 1, 60.0, None, accepted, "", dropouts, {}
    )  # fmt: skip


POINTS = st.tuples(st.sampled_from([0.5, 0.7, 0.9, math.nan]), st.integers(1, 5), st.sampled_from([0.0, 0.3]))


@given(st.lists(POINTS, min_size=1, max_size=8))
def test_the_frontier_has_the_best_for_each_size_and_none_that_is_beaten(
    points: list[tuple[float, int, float]],
) -> None:
    rows = frontier([row(metric, size, dropouts=dropouts) for metric, size, dropouts in points], "auc")
    for dropouts in {one.dropouts for one in rows}:
        compared = [one for one in rows if one.dropouts == dropouts]
        for one in compared:
            better = [
                other for other in compared
                if other.bytes_a_round <= one.bytes_a_round and np.nan_to_num(other.metrics["auc"], nan=-1)
                > np.nan_to_num(one.metrics["auc"], nan=-1)
            ]  # fmt: skip
            assert not (one.is_frontier and better)
        least = min(one.bytes_a_round for one in compared)
        assert any(one.is_frontier for one in compared if one.bytes_a_round == least)


def test_the_cheapest_near_the_best_is_proposed_unless_its_cohorts_are_rejected() -> None:
    rows = [row(0.9, 100), row(0.9 - NEAR / 2, 10), row(0.9 - 3 * NEAR, 1), row(0.95, 1, accepted=0.2)]
    assert proposed(rows, "auc") is rows[1]
    assert proposed([row(math.nan, 3), row(math.nan, 2)], "auc").bytes_a_round == 2


def test_the_proposal_endures_the_most_dropouts() -> None:
    frail, sturdy = row(0.6, 1, dropouts=0.3), row(0.8, 10, dropouts=0.3)
    assert proposed([row(0.9, 1), frail, row(0.9, 10), sturdy], "auc") is sturdy


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_several_seeds_give_a_mean_and_its_standard_error(values: list[float]) -> None:
    means, errors = averages([{"auc": value} for value in values])
    assert means["auc"] == pytest.approx(fmean(values))
    if len(values) == 1:
        assert errors == {}
        assert means["auc"] == values[0]
    else:
        assert errors["auc"] == pytest.approx(stdev(values) / math.sqrt(len(values)), abs=1e-9)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.floats(0, 60))
def test_given_prices_stand_in_place_of_the_assumed_ones(gas: int, blob_gas: int, block: float) -> None:
    terms = at_prices(gas, blob_gas, block)
    assert (terms.gas_price, terms.blob_gas_price, terms.block_seconds) == (gas, blob_gas, block)
    assert terms.beacon_seconds == ASSUMED.beacon_seconds
    assert at_prices(None, None, None) == ASSUMED


def test_prices_below_nothing_and_no_seed_are_refused() -> None:
    for prices in ((-1, None, None), (None, -1, None), (None, None, -1.0), (None, None, math.nan)):
        with raises_fault(LabError, "SettingOutOfRange", match="0 or more"):
            at_prices(*prices)
    with raises_fault(LabError, "SettingOutOfRange", match="1 or more"):
        Play(seeds=0)


@pytest.fixture
def own(tmp_path: Path, command: CommandLine) -> Path:
    """A folder with a table, its task file and its mapping. Two rounds: every test plays several whole tasks."""
    patients().to_csv(tmp_path / "own.csv", index=False)
    done(command("task", "new", "--from", "own.csv", "--label", "died", "--sites", "hospital", "--output", "task.toml"))
    task = tmp_path / "task.toml"
    task.write_text(of_few_rounds(task.read_text()))
    return tmp_path


@pytest.fixture
def played(own: Path) -> Callable[..., consilium.GridResult]:
    """Plays a grid of that table, of whose four hospitals three are the least."""

    def play(axes: list[str], table: str = "own.csv", **more: Any) -> consilium.GridResult:
        task = consilium.Task.read(own / "task.toml")
        return consilium.simulate_grid(
            task, axes, table=own / table, sites="hospital", voters=2,
            mapping=own / "task.mapping.toml", **more,
        )  # fmt: skip

    return play


def test_ether_and_minutes_are_the_estimates_at_the_given_prices(played: Callable[..., consilium.GridResult]) -> None:
    found = played(["hospitals"], gas_price=7, blob_gas_price=3, block_seconds=2.0)
    for one, told, shown in zip(found.rows, found.as_json()["rows"], found.frame.itertuples(), strict=True):
        costs = estimate(parse_task_spec(one.task_file.encode()), found.details.terms)
        assert one.wei == costs.all_gas * 7 + costs.published_blobs * BYTES_PER_BLOB * 3 == int(told["wei"])
        assert one.seconds == costs.expected == pytest.approx(shown.minutes * 60)
        assert shown.eth == pytest.approx(one.wei / 10**18)
    assert any("7e-09 gwei a gas" in words and "2 s a block" in words for words in found.notes)


def test_a_row_of_several_seeds_is_the_mean_of_its_plays(played: Callable[..., consilium.GridResult]) -> None:
    several = played(["hospitals"], seed=3, seeds=2)
    # The rows are dealt by the first seed, so each form's first play is the one of a single seed.
    single = played(["hospitals"], seed=3)
    assert "accuracy_error" in several.frame.columns
    assert not [name for name in single.frame.columns if "error" in name]
    assert [one.errors for one in single.rows] == [{}, {}]
    for mean, first in zip(several.rows, single.rows, strict=True):
        second = 2 * mean.metrics["accuracy"] - first.metrics["accuracy"]
        assert mean.errors["accuracy"] == pytest.approx(abs(first.metrics["accuracy"] - second) / 2, abs=1e-12)
    assert any("2 seeds" in words for words in several.notes)


def test_references_are_those_of_the_simulation_of_the_task(
    own: Path, played: Callable[..., consilium.GridResult], tmp_path: Path
) -> None:
    found = played(["hospitals"])
    task = consilium.Task.read(own / "task.toml")
    alone = consilium.simulate(task, table=own / "own.csv", sites="hospital", voters=2,
                               mapping=own / "task.mapping.toml")  # fmt: skip
    assert found.details.references == alone.details.references
    assert list(found.references.index) == list(alone.metrics.index[2:])
    page = found.write_page(tmp_path / "page.html").read_text()
    for words in ("all rows in one place", "plain FedAvg", "each hospital alone, mean", "evenly spaced", "gwei a gas"):
        assert words in page
    assert page.count("all rows in one place") == 3, "a tile, a line and a row of the table"


def test_rows_of_hospitals_that_are_left_out_are_not_used() -> None:
    data = deal_wdbc(4, 2, 0)
    windows = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 600)
    terms = TaskSettings(rounds=1, cohorts=1, seats=2, windows=windows)
    spec = parse_task_spec(task_toml(data, terms).replace("min_hospitals = 4", "min_hospitals = 3").encode())
    hospitals = dict(zip("abcd", examples_of(data.hospitals, data.schema), strict=True))
    voters = dict(zip("vw", examples_of(data.held_out, data.schema), strict=True))
    (left_out,) = hospitals.keys() - set(taking_part({name: part.rows for name, part in hospitals.items()}, 3))
    assert hospitals[left_out].rows == min(part.rows for part in hospitals.values())
    flipped = dataclasses.replace(hospitals[left_out], labels=1 - hospitals[left_out].labels)
    (whole, few), (whole_again, few_again) = (
        simulate_grid(spec, ["hospitals"], parts, voters).rows for parts in (hospitals, hospitals | {left_out: flipped})
    )
    assert [one.form["hospitals"] for one in (whole, few)] == ["4 of 4", "3 of 4"]
    assert few.metrics == few_again.metrics
    assert whole.metrics != whole_again.metrics
    assert few.gas < whole.gas


def test_python_and_the_command_line_say_the_same(own: Path, command: CommandLine) -> None:
    rows: dict[str, Any] = {
        "table": own / "own.csv",
        "sites": "hospital",
        "voters": 2,
        "mapping": own / "task.mapping.toml",
    }
    found = consilium.simulate_grid(consilium.Task.read(own / "task.toml"), ["bits"], **rows)
    assert isinstance(found.frame, pd.DataFrame)
    assert list(found.frame["bits"]) == ["4", "8", "16"]
    assert list(found.frame["bytes"]) == sorted(found.frame["bytes"])
    said = command(
        "simulate", "task.toml", "--table", "own.csv", "--sites", "hospital", "--voters", "2", "--grid", "bits",
        "--output", "rows.json", "--page", "page.html", "--proposed", "next.toml",
    )  # fmt: skip
    done(said, "proposed", "written", "beside, accuracy: all rows in one place 0.", "at 1.5 gwei a gas")
    told = json.loads((own / "rows.json").read_text())
    assert [one["bytes"] for one in told["rows"]] == list(found.frame["bytes"])
    assert (own / "next.toml").read_text() == found.proposed.task_file
    assert "Proposed" in (own / "page.html").read_text()
    parse_task_spec((own / "next.toml").read_bytes())


@pytest.mark.usefixtures("own")
def test_nonsense_is_refused_in_words(command: CommandLine) -> None:
    rows = ("simulate", "task.toml", "--table", "own.csv", "--sites", "hospital")
    refused(command(*rows, "--grid", "codec,colour"), "GridUnknown", "'colour'", "codec, outer, epochs, bits, epsilon")
    refused(command(*rows, "--grid", "bits", "--seeds", "0"), "SettingOutOfRange", "the number of seeds cannot be 0")
    refused(command(*rows, "--grid", "bits", "--gas-price", "nan"), "SettingOutOfRange", "the price of gas")
    refused(command(*rows, "--grid", "dropouts", "--dropouts", "0.1"), "leave out one of both", code=2)
    for option, value in (("proposed", "next.toml"), ("seeds", "2"), ("gas-price", "2"), ("block-seconds", "2")):
        refused(command(*rows, f"--{option}", value), f"--{option}", "belongs to --grid", code=2)
