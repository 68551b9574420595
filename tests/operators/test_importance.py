"""The importance of columns, and subgroups: of a model whose weights are known."""

from __future__ import annotations

import json
from pathlib import Path

import consilium
import numpy as np
import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.data.kinds import read_examples
from consilium_client.data.table.reader import Table
from consilium_client.evaluation.importance import importances, subgroups
from consilium_core.kinds import of_kind
from model_driver import written

TASK = """
name = "asked"
[data]
label = "sick"
classes = ["no", "yes"]
subgroups = ["sex"]
[[data.features]]
name = "age"
min = 0
max = 100
[[data.features]]
name = "noise"
min = 0
max = 100
[[data.features]]
kind = "category"
name = "sex"
values = ["female", "male", "other"]
[model]
name = "logistic"
"""
SCHEMA = of_kind(TableSchema, parse_task_spec(TASK.encode()).data)


def rows_of(path: Path, rows: int = 120) -> Path:
    random = np.random.default_rng(2)
    lines = ["age,noise,sex,sick"]
    for at in range(rows):
        age, sex = random.integers(0, 101), ("female", "male", "other", "")[at % 4]
        lines.append(f"{age},{random.integers(0, 101)},{sex},{int(age > 50)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def table_of(tmp_path: Path) -> Table:
    return of_kind(Table, read_examples(rows_of(tmp_path / "rows.csv"), SCHEMA))


def test_a_column_that_decides_is_important_and_others_are_not(tmp_path: Path) -> None:
    table, seen = table_of(tmp_path), list[np.ndarray]()

    def worth(rows: Table) -> float:
        seen.append(rows.features)
        return float(np.mean((rows.features[:, 0] > 0.5) == rows.labels))

    first, *others = importances(table, SCHEMA, worth, seed=0)
    assert first.column == "age"
    assert 0.3 < first.low <= first.mean <= first.high < 0.7  # half of the answers are right by chance
    assert [(one.mean, one.low, one.high) for one in others] == [(0, 0, 0)] * 2
    assert importances(table, SCHEMA, worth, seed=0)[0] == first
    for features in seen:  # values stay in their column, and a category's columns stay together
        np.testing.assert_array_equal(np.sort(features, axis=0), np.sort(table.features, axis=0))
        codes = features[:, 2:]
        assert (np.isnan(codes).all(axis=1) | (codes.sum(axis=1) <= 1)).all()


def test_subgroups_are_the_values_of_the_tasks_columns(tmp_path: Path) -> None:
    found = dict(subgroups(table_of(tmp_path), SCHEMA))
    assert list(found) == ["sex = female", "sex = male", "sex = other", "sex missing"]
    for at, rows in enumerate(found.values()):
        assert np.flatnonzero(rows).tolist() == list(range(at, 120, 4))


def test_an_evaluation_has_both(tmp_path: Path) -> None:
    model = consilium.Model.read(written(tmp_path, TASK))
    output = tmp_path / "result.json"
    found = model.evaluate(rows_of(tmp_path / "rows.csv"), output=output)
    assert [one.name for one in found.report.subgroups] == ["sex = female", "sex = male", "sex = other", "sex missing"]
    assert [one.rows for one in found.report.subgroups] == [30] * 4
    assert set(found.importance.index) == {"age", "noise", "sex"}
    assert found.subgroups.loc[("sex = male", "auc"), "value"] is not None
    assert json.loads(output.read_text())["importance_by"] == "accuracy"
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["age", "weight"])
def test_a_subgroup_is_a_column_of_categories(name: str) -> None:
    with pytest.raises(SpecInvalid, match=f"subgroups has {name}, which is no column of categories"):
        parse_task_spec(TASK.replace('subgroups = ["sex"]', f'subgroups = ["{name}"]').encode())
