"""One's own table: drafted into a task, dealt to hospitals and voters, and played."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import consilium
import numpy as np
import pandas as pd
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_cli.main import app
from consilium_client.data.mapping import read_mapping
from consilium_client.data.table.reader import read_raw
from consilium_client.errors import DataError
from consilium_core.kinds import of_kind
from consilium_lab.errors import LabError
from consilium_lab.own_table import deal, evenly, own_table, sites_of
from consilium_operators.drafting import draft, likely_label, likely_sites, read_sample, to_leave_out
from consilium_operators.errors import OperatorError
from hypothesis import given, settings
from hypothesis import strategies as st
from patients import SITES, patients
from raised_faults import raises_fault
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    patients().to_csv(path, index=False)
    return path


def test_a_draft_reads_the_table_that_it_is_of(table: Path) -> None:
    task = consilium.draft(table, "died", "hospital")
    schema = of_kind(TableSchema, task.spec.data)
    assert [one.name for one in schema.features] == ["age", "sex", "creatinine", "wbc", "smoker"]
    assert task.left_out == {"patient_id": "its name or its values look like an identity or a time"}
    assert (schema.label, schema.classes) == ("died", ["no", "yes"])
    kinds = [type(one) for one in schema.features]
    assert kinds == [NumericFeature, CategoryFeature, NumericFeature, NumericFeature, CategoryFeature]
    raw, frame = read_raw(table, schema, task.mapping), patients()
    np.testing.assert_array_equal(raw.values["age"], frame["age"])
    assert np.isnan(raw.values["wbc"]).sum() == (frame["wbc"] == "NA").sum() > 0
    assert raw.labels.tolist() == (frame["died"] == "yes").astype(int).tolist()
    assert raw.values["sex"].tolist() == (frame["sex"] == "M").astype(float).tolist()
    for one in schema.features:
        if isinstance(one, NumericFeature):
            values = raw.values[one.name][~np.isnan(raw.values[one.name])]
            assert one.min <= values.min() <= values.max() < one.max, "the range has room"


def test_ranges_do_not_show_the_extreme_rows(table: Path) -> None:
    """They are round numbers outside the table's own ends: no oldest patient's age is in the file."""
    schema = of_kind(TableSchema, consilium.draft(table, "died", "hospital").spec.data)
    (age,) = (one for one in schema.features if one.name == "age")
    assert isinstance(age, NumericFeature)
    assert (age.min, age.max) == (0, 140)


@pytest.mark.parametrize(
    ("text", "decimal", "delimiter"),
    [
        ("a;b;ill\n1,5;2;ja\n2,5;3;nein\n", ",", ";"),
        ("a\tb\till\n1.5\t2\tja\n2.5\t3\tnein\n", ".", "\t"),
        ("a|b|ill\n1.5|2|ja\n2.5|3|nein\n", ".", "|"),
        ("a,b,ill\n1.5,2,ja\n2.5,3,nein\n", ".", ","),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-8-sig"])
def test_the_form_of_a_file_is_found(tmp_path: Path, text: str, decimal: str, delimiter: str, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.replace("ja", "für").encode(encoding))
    sample = read_sample(path)
    assert (sample.format.decimal, sample.format.delimiter) == (decimal, delimiter)
    found = draft(sample, "ill")
    assert read_raw(path, of_kind(TableSchema, found.schema), found.mapping).values["a"].tolist() == [1.5, 2.5]
    assert found.schema.classes == ["für", "nein"]


def test_parquet_and_csv_give_the_same_draft(table: Path) -> None:
    frame = pd.read_csv(table, keep_default_na=False)
    frame.to_parquet(table.with_suffix(".parquet"), index=False)
    first, other = (consilium.draft(path, "died", "hospital") for path in (table, table.with_suffix(".parquet")))
    assert first.spec == other.spec
    raws = [read_raw(path, of_kind(TableSchema, first.spec.data), task.mapping)
            for path, task in ((table, first), (table.with_suffix(".parquet"), other))]  # fmt: skip
    for name, values in raws[0].values.items():
        np.testing.assert_array_equal(values, raws[1].values[name])


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["0", "1", "0"], ["no", "yes"], [0, 1, 0]),
        (["1", "2", "1"], ["class 1", "class 2"], [0, 1, 0]),
        (["0", "1", "2"], ["0", "1", "2"], [0, 1, 2]),
        (["-1", "1.0", "1"], ["class -1", "class 1"], [0, 1, 1]),
        (["b/c", "a", "b/c"], ["class a", "class b-c"], [1, 0, 1]),
        (["a/b", "a-b", "a"], ["class 0", "class 1", "class 2"], [2, 1, 0]),
        (["10", "9", "10"], ["class 9", "class 10"], [1, 0, 1]),
    ],
)
def test_labels_of_any_form_become_classes(
    tmp_path: Path, labels: list[str], classes: list[str], numbers: list[int]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{row},{label}\n" for row, label in enumerate(labels)))
    found = draft(read_sample(path), "y")
    assert found.schema.classes == classes
    assert read_raw(path, of_kind(TableSchema, found.schema), found.mapping).labels.tolist() == numbers


CELLS = st.sampled_from(["", "?", "NA", "1", "2.5", "-3e2", "yes", "no", "a b", 'q"', "1,5", "0", "1", "ü", "#", "]"])


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["0", "1", "x"])), min_size=3, max_size=40))
def test_any_table_is_drafted_or_refused_by_name(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]]
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    pd.DataFrame(rows, columns=["é", "b c", "y"]).to_csv(path, index=False)
    try:
        task = consilium.draft(path, "y")
    except OperatorError as error:
        if error.name not in ("LabelNotClasses", "NothingToLearnFrom"):
            raise
        return
    schema = of_kind(TableSchema, parse_task_spec(task.raw).data)
    written = task.write(path.with_name("task.toml"))
    mapping = read_mapping(written.with_suffix(".mapping.toml"), schema)
    assert read_raw(path, schema, mapping).rows == len(rows)


@pytest.mark.parametrize(
    ("text", "label", "error", "name"),
    [
        ("a,b\n1,2\n", "c", OperatorError, "ColumnUnknown"),
        ("a,b\n1,2\n2,2\n", "b", OperatorError, "LabelNotClasses"),
        ("a,b\n" + "".join(f"1,x{row}\n" for row in range(30)), "b", OperatorError, "LabelNotClasses"),
        ("a,b\n1,0\n1,1\n", "b", OperatorError, "NothingToLearnFrom"),
        ("1,2\n3,4\n", "1", DataError, "HeaderMissing"),
        ("a,a\n3,4\n", "a", DataError, "ColumnsWrong"),
        ("a,b\n", "a", DataError, "DataFileEmpty"),
        ("", "a", DataError, "DataFileEmpty"),
        ("PK\x03\x04", "a", DataError, "FileKindWrong"),
    ],
)
def test_what_cannot_be_a_task_is_refused_by_name(
    tmp_path: Path, text: str, label: str, error: type[consilium.Fault], name: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with raises_fault(error, name):
        consilium.draft(path, label)


def test_likely_answers(table: Path) -> None:
    sample = read_sample(table)
    assert (likely_label(sample), likely_sites(sample)) == ("died", "hospital")
    assert list(to_leave_out(sample, ["died", "hospital"])) == ["patient_id"]


def test_each_row_is_dealt_once_and_voters_have_rows_of_each_hospital(table: Path) -> None:
    sample = read_sample(table)
    sites = sites_of(sample, "hospital")
    labels = np.array([cell == "yes" for cell in sample.columns["died"]]).astype(np.int64)
    for by_site in (sites, evenly(labels, 5)):
        dealt = deal(by_site, labels, 3, 7)
        kept, held_out = list(dealt.hospitals.values()), dealt.voters
        assert np.array_equal(np.sort(np.concatenate([*kept, *held_out])), np.arange(200))
        assert max(map(len, held_out)) - min(map(len, held_out)) <= 1
        for rows in held_out:
            assert set(labels[rows]) == {0, 1}
            assert all(np.isin(rows, of_site).any() for of_site in by_site.values())
        for name, rows in dealt.hospitals.items():
            assert len(rows) / len(by_site[name]) == pytest.approx(2 / 3, abs=0.06)
    assert [len(rows) for rows in sites.values()] == sorted((len(rows) for rows in sites.values()), reverse=True)
    again, other = deal(sites, labels, 3, 7), deal(sites, labels, 3, 8)
    first = deal(sites, labels, 3, 7)
    assert all(np.array_equal(a, b) for a, b in zip(first.voters, again.voters, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first.voters, other.voters, strict=True))


def test_names_of_hospitals_are_safe_and_distinct(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,site,y\n" + "".join(f"1,{site},0\n" for site in ("../a b", "a-b", "3", "Ä", "x" * 90)))
    names = list(sites_of(read_sample(path), "site"))
    assert len(set(names)) == 5
    assert all(name.replace("-", "").isalnum() and name.isascii() and len(name) < 45 for name in names)


@pytest.mark.parametrize(
    ("sites", "words"),
    [(["a"] * 3, "1 hospitals"), (["a", "", "b"], "row 2"), ([str(k) for k in range(257)], "257 hosp")],
)
def test_wrong_sites_are_refused(tmp_path: Path, sites: list[str], words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,site,y\n" + "".join(f"1,{site},0\n" for site in sites))
    with raises_fault(LabError, "SitesWrong", match=words):
        sites_of(read_sample(path), "site")


def test_too_few_rows_for_the_voters(table: Path) -> None:
    task = consilium.draft(table, "died", "hospital")
    with raises_fault(LabError, "DemoTooManyParties"):
        consilium.simulate(task, table=table, sites="hospital", voters=60)


def test_a_newcomers_path_is_as_good_as_scikit_learn(table: Path) -> None:
    """By the command line, as typed: a task from the table, then its simulation."""
    folder = table.parent
    ran = CliRunner().invoke(app, ["task", "new", "--from", str(table), "--output", str(folder / "task.toml")])
    assert ran.exit_code == 0, ran.output
    (line,) = (line for line in ran.output.splitlines() if line.startswith("Next: consilium simulate"))
    given = [*line.removeprefix("Next: consilium ").split(), "--output", str(folder / "r.json")]
    ran = CliRunner().invoke(app, [*given, "--page", str(folder / "r.html")], env={"COLUMNS": "80"})
    assert ran.exit_code == 0, ran.output
    assert "all rows in one place" in (folder / "r.html").read_text()
    task = consilium.draft(table, "died", "hospital")
    result = consilium.simulate(task, table=table, sites="hospital", voters=5)
    assert json.loads((folder / "r.json").read_text())["bases"] == result.bases, "the command calls the interface"
    schema = of_kind(TableSchema, task.spec.data)
    own = own_table(table, schema, task.mapping, "hospital", 5, 0)
    wbc = own.table.values["wbc"]
    whole = np.where(np.isnan(wbc), np.nanmean(wbc), wbc)
    x = np.column_stack([own.table.values["age"], own.table.values["creatinine"], whole, own.table.values["sex"]])
    train, test = np.concatenate(list(own.dealt.hospitals.values())), np.concatenate(own.dealt.voters)
    scaler = StandardScaler().fit(x[train])
    model = LogisticRegression().fit(scaler.transform(x[train]), own.table.labels[train])
    reference = accuracy_score(own.table.labels[test], model.predict(scaler.transform(x[test])))
    assert result.metrics.loc["together", "accuracy"] > reference - 0.05
    assert result.metrics.loc["together", "accuracy"] > result.metrics.loc["start", "accuracy"] + 0.2


def test_results_are_frames_and_a_figure(table: Path, tmp_path: Path) -> None:
    started: list[int] = []
    result = consilium.simulate(
        consilium.draft(table, "died", "hospital", epsilon=8.0),
        table=table,
        sites="hospital",
        voters=3,
        on_start=lambda hospitals, voters: started.append(sum(hospitals.values()) + sum(voters.values())),
    )
    assert started == [200]
    assert result.rounds.index.tolist() == [1, 2, 3, 4, 5]
    assert set(result.parties.index) == {*SITES, "voter-1", "voter-2", "voter-3", "aggregator"}
    assert result.parties["rows"].sum() == 200
    assert result.figure().axes[0].get_ylabel() == "accuracy, % of held-out rows"
    assert result.write_page(tmp_path / "p.html").read_text().count("<svg") == 1
    assert result.as_json()["epsilon"] == 8.0
    assert len(result.bases) == 6


def test_task_new_answers_by_options_and_asks_for_nothing_without_a_terminal(table: Path) -> None:
    output = table.parent / "t.toml"
    given = ["task", "new", "--from", str(table), "--output", str(output), "--label", "sex", "--sites", "-"]
    ran = CliRunner().invoke(app, [*given, "--leave-out", "patient_id,died", "--name", "é # x", "--epsilon", "3"])
    assert ran.exit_code == 0, ran.output
    spec = parse_task_spec(output.read_bytes())
    assert (spec.name, spec.data.label) == ("é # x", "sex")
    assert spec.privacy is not None
    assert spec.privacy.epsilon == 3
    assert "hospital" in spec.data.used, "it is a column like others"
    (smoker,) = (one for one in of_kind(TableSchema, spec.data).features if one.name == "smoker")
    assert of_kind(CategoryFeature, smoker).values == ["former", "no", "yes"]
    assert "columns" not in tomllib.loads(output.with_suffix(".mapping.toml").read_text())
    again = CliRunner().invoke(app, given)
    assert getattr(again.exception, "name", None) == "OutputTaken"


def test_arguments_that_do_not_fit_together(table: Path) -> None:
    task = consilium.draft(table, "died", "hospital")
    with pytest.raises(TypeError, match="with a table"):
        consilium.simulate(task, table=table, sites={"a": table})
    with pytest.raises(TypeError, match="without a table"):
        consilium.simulate(task, sites="hospital")


def test_a_slip_of_the_pen_among_labels_is_shown_and_next_steps_are_quoted(tmp_path: Path) -> None:
    frame = patients()
    frame.loc[7, "died"] = "maybe"
    table = tmp_path / "my rows.csv"
    frame.to_csv(table, index=False)
    output = tmp_path / "a task.toml"
    ran = CliRunner().invoke(app, ["task", "new", "--from", str(table), "--output", str(output), "--label", "died"])
    assert ran.exit_code == 0, ran.output
    assert "rows by class: maybe 1, no " in ran.output
    assert "few rows of maybe" in ran.output
    (line,) = (line for line in ran.output.splitlines() if line.startswith("Next: "))
    assert shlex.split(line)[1:6] == ["consilium", "simulate", str(output), "--table", str(table)]


def test_a_parquet_files_bytes_give_no_form_of_text(tmp_path: Path) -> None:
    """They may have any delimiter in them."""
    patients().assign(note=";;;;").to_parquet(tmp_path / "t.parquet", index=False)
    mapping = consilium.draft(tmp_path / "t.parquet", "died", "hospital").mapping
    assert (mapping.file.delimiter, mapping.file.encoding, mapping.file.decimal) == (",", "utf-8", ".")
