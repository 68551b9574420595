"""Splits: nobody's row twice, everybody both classes, and clear words for files that are not there or not right."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import NumericFeature
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.table.reader import Table
from consilium_core.kinds import of_kind
from consilium_lab.demo.datasets import HEART_HOSPITALS, DemoData, Frame, deal_heart, deal_wdbc, write_csv
from consilium_lab.demo.generated import HAZARDS, ROWS, deal_recurrence
from consilium_lab.demo.references import pooled, simulate_fedavg
from consilium_lab.demo.task_file import TaskSettings, task_spec, task_toml
from consilium_lab.errors import LabError
from examples_read import read_table
from lifelines import CoxPHFitter
from raised_faults import raises_fault

HEART = Path(__file__).resolve().parents[3] / "shared" / "data" / "heart"
needs_heart = pytest.mark.skipif(not HEART.is_dir(), reason=f"no UCI heart files at {HEART}")

LINE = "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n"


def _read_back(data: DemoData, tmp_path: Path) -> tuple[list[Table], list[Table]]:
    def through_file(frame: Frame) -> Table:
        write_csv(frame, tmp_path / "rows.csv")
        return read_table(tmp_path / "rows.csv", of_kind(TableSchema, data.schema))

    return [through_file(frame) for frame in data.hospitals], [through_file(frame) for frame in data.held_out]


@pytest.mark.parametrize(("hospitals", "voters"), [(1, 1), (4, 5), (10, 7), (40, 16)])
def test_deal_wdbc_deals_every_row_once(tmp_path: Path, hospitals: int, voters: int) -> None:
    trained, judged = _read_back(deal_wdbc(hospitals, voters, seed=3), tmp_path)
    assert (len(trained), len(judged)) == (hospitals, voters)
    everything = np.concatenate([table.features for table in [*trained, *judged]])
    assert everything.shape == (569, 30)
    assert len(np.unique(everything, axis=0)) == 569
    assert all(set(table.labels.tolist()) == {0, 1} for table in [*trained, *judged])
    assert max(table.rows for table in judged) - min(table.rows for table in judged) <= 1


def test_deal_wdbc_ranges_cover_the_data(tmp_path: Path) -> None:
    """The public ranges clamp nothing: what was dealt comes back from the files, scaled."""
    data = deal_wdbc(2, 2, seed=0)
    trained, _ = _read_back(data, tmp_path)
    for frame, table in zip(data.hospitals, trained, strict=True):
        features = of_kind(TableSchema, data.schema).features
        upper = [of_kind(NumericFeature, feature).max for feature in features]
        np.testing.assert_allclose(frame.drop(columns="malignant").to_numpy() / upper, table.features)


def test_deal_wdbc_depends_on_seed() -> None:
    first, again, other = (deal_wdbc(3, 2, seed).hospitals[0] for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_deal_wdbc_deals_unevenly() -> None:
    assert [len(frame) for frame in deal_wdbc(4, 5, seed=0).hospitals] == [158, 119, 80, 41]


@pytest.mark.parametrize(("hospitals", "voters"), [(0, 5), (400, 5), (4, 0), (4, 200)])
def test_deal_wdbc_too_many_or_no_parties(hospitals: int, voters: int) -> None:
    with raises_fault(LabError, "DemoTooManyParties"):
        deal_wdbc(hospitals, voters, seed=0)


@needs_heart
def test_deal_heart_deals_every_row_once(tmp_path: Path) -> None:
    data = deal_heart(HEART, 5, seed=2)
    trained, judged = _read_back(data, tmp_path)
    assert data.hospital_names == list(HEART_HOSPITALS)
    assert sum(table.rows for table in trained) + sum(table.rows for table in judged) == 303 + 294 + 123 + 200
    assert all(set(table.labels.tolist()) == {0, 1} for table in judged)
    assert {frame["age"].str.contains(".", regex=False).any() for frame in data.hospitals} == {True, False}
    swiss = trained[HEART_HOSPITALS.index("switzerland")]
    assert not swiss.features[:, 6].any()  # serum cholesterol of 0: the source's own mess, kept
    assert np.isnan(swiss.features[:, 7]).mean() > 0.5  # and most fasting blood sugars missing


@needs_heart
def test_deal_heart_complete_rows_are_flambys_740() -> None:
    data = deal_heart(HEART, 5, seed=2, complete_rows_only=True)
    assert sum(map(len, data.hospitals)) + sum(map(len, data.held_out)) == 740


@needs_heart
@pytest.mark.parametrize("voters", [0, 200])
def test_deal_heart_too_many_or_no_voters(voters: int) -> None:
    with raises_fault(LabError, "DemoTooManyParties"):
        deal_heart(HEART, voters, seed=0)


def _raw_heart(directory: Path, line: str = LINE) -> Path:
    for name in HEART_HOSPITALS:
        (directory / f"processed.{name}.data").write_text(LINE * 2 + line)
    return directory


REFUSED: list[tuple[str, str | None, str]] = [
    ("file_missing", None, "DemoDataMissing"),
    ("empty", "", "DemoDataMalformed"),
    ("short_line", LINE + LINE.replace("63.0,", ""), "DemoDataMalformed"),
    ("long_line", "1," + LINE, "DemoDataMalformed"),
    ("text", LINE.replace("145.0", "high"), "DemoDataMalformed"),
    ("label_missing", LINE.replace(",0\n", ",?\n"), "DemoDataMalformed"),
    ("label_out_of_range", LINE.replace(",0\n", ",5\n"), "DemoDataMalformed"),
    ("not_ascii", LINE + "ä", "DemoDataMalformed"),
]


@pytest.mark.parametrize(("content", "error"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_deal_heart_refuses_by_name(tmp_path: Path, content: str | None, error: str) -> None:
    path = _raw_heart(tmp_path) / "processed.hungarian.data"
    path.unlink()
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with raises_fault(LabError, error) as caught:
        deal_heart(tmp_path, 1, seed=0)
    assert "high" not in str(caught.value)


def test_deal_heart_missing_directory(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    with raises_fault(LabError, "DemoDataMissing"):
        deal_heart(tmp_path, 1, seed=0)


def test_task_toml_parses_to_the_spec_it_was_made_from() -> None:
    data = deal_wdbc(6, 3, seed=0)
    settings = TaskSettings(rounds=2, cohorts=3, seats=2, windows={"join": 5}, masked=False)
    spec = parse_task_spec(task_toml(data, settings).encode())
    assert spec == task_spec(data, settings)
    assert isinstance(spec, TaskSpec)
    assert (spec.rounds.rounds, spec.rounds.cohorts, spec.rounds.max_hospitals) == (2, 3, 6)
    assert (spec.judging.max_voters, spec.judging.seats, spec.windows.join) == (3, 2, 5)
    assert of_kind(TableSchema, spec.data).columns == 30
    assert spec.money.aggregator_bond == 2_000  # two slashes, each of two of its fees of 500


@needs_heart
def test_task_toml_of_heart_parses() -> None:
    spec = parse_task_spec(task_toml(deal_heart(HEART, 5, seed=0)).encode())
    assert (of_kind(TableSchema, spec.data).columns, spec.parameters) == (13, 14)


@pytest.mark.filterwarnings("ignore:Starting with pandas")  # calls of lifelines
def test_generated_times_follow_the_stated_hazards_and_differ_by_seed() -> None:
    data = deal_recurrence(6, 5, 0)
    assert [len(part) for part in data.hospitals] == [187, 168, 149, 131, 112, 93]
    assert [len(part) for part in data.held_out] == [72] * 5
    whole = pd.concat([*data.hospitals, *data.held_out], ignore_index=True)
    assert len(whole.drop_duplicates()) == ROWS
    columns = whole.assign(
        age=whole["age"] / 12, marker=whole["marker"] / 6, treated=(whole["treated"] == "yes").astype(float)
    )
    found = CoxPHFitter().fit(columns, "days", "recurred").params_
    assert {name: found[name] for name in HAZARDS} == pytest.approx(HAZARDS, abs=0.15)
    assert not deal_recurrence(6, 5, 1).hospitals[0].equals(data.hospitals[0])
    run = simulate_fedavg(data, task_spec(data), 0)
    together = pooled(data, task_spec(data), 0)["c_index"]
    assert run.history[-1]["c_index"] == pytest.approx(together, abs=0.01)
    assert together > 0.75
