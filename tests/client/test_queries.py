"""Queries over a hospital's own folder: the documented ones give the table that pandas gives, and the same checks as a
file's follow.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.door import admitted
from consilium_client.data.kinds import kind_of, read_examples
from consilium_client.data.mapping import Mapping, parse_mapping, read_mapping
from consilium_client.data.table.kind import TableProfile
from consilium_client.data.table.reader import RawTable
from consilium_client.data.table.sheet import BAR, HEIGHT, MARGIN, WIDTH, write_histograms
from consilium_client.data.text.reader import TextSet
from consilium_client.data.use import Use
from consilium_client.errors import CellError, DataError
from PIL import Image
from query_exports import DAY, PER_MG, Patient, documented, patients, resources, write_fhir, write_omop
from raised_faults import raises_fault

SPEC = parse_task_spec(
    b"""
name = "kidneys"
[data]
label = "LABEL"
classes = ["no", "yes"]
features = [
  { name = "age", min = 18, max = 100 },
  { kind = "category", name = "sex", values = ["female", "male"] },
  { name = "creatinine", min = 0.1, max = 15 },
]
[model]
name = "logistic"
""".replace(b"LABEL", b"died")
)
FHIR_SPEC = parse_task_spec(b"""
name = "kidneys"
[data]
label = "kidney_disease"
classes = ["no", "yes"]
features = [
  { name = "age", min = 18, max = 100 },
  { kind = "category", name = "sex", values = ["female", "male"] },
  { name = "creatinine", min = 0.1, max = 15, mean = 1.2, deviation = 0.4 },
]
[model]
name = "logistic"
""")
TEXTS = parse_task_spec(b"""
name = "notes"
[data]
kind = "text"
text = "note"
label = "found"
classes = ["healthy", "ill"]
[model]
name = "lora"
""")
SIXTY = patients(60)


def written(folder: Path, mapping: str) -> Path:
    path = folder / "mapping.toml"
    path.write_text(mapping, encoding="utf-8")
    return path


def with_sql(sql: str, **more: object) -> str:
    return tomli_w.dumps({"query": {"sql": sql, **more}})


def read(data: Path, spec: TaskSpec, mapping: str) -> RawTable:
    found = kind_of(spec.data).read(data, spec.data, written(data.parent, mapping))
    assert isinstance(found, RawTable)
    return found


def reference(those: list[Patient], age: str) -> pd.DataFrame:
    """`age`: "years" completed on 1 January 2026, or "difference" of calendar years to the stay."""
    return pd.DataFrame(
        {
            "age": [(2026 - one.born.year - ((one.born.month, one.born.day) > (1, 1))) if age == "years"
                    else DAY.year - one.born.year for one in those],
            "sex": [float(one.sex == "male") for one in those],
            "creatinine": [one.latest for one in those],
            "label": [int(one.ill) for one in those],
        }
    )  # fmt: skip


def require_equal(found: RawTable, expected: pd.DataFrame, tolerance: float = 0.0) -> None:
    for name in ("age", "sex", "creatinine"):
        np.testing.assert_allclose(found.values[name], expected[name], rtol=tolerance)
    assert found.labels.tolist() == expected["label"].tolist()


def by_id(those: list[Patient]) -> list[Patient]:
    return sorted(those, key=lambda one: str(one.id))


def test_the_documented_omop_query_gives_the_cohort(tmp_path: Path) -> None:
    found = read(write_omop(tmp_path / "omop", SIXTY), SPEC, documented("An OMOP export"))
    require_equal(found, reference(SIXTY, "difference"))
    assert found.patients == tuple(str(float(one.id)) for one in SIXTY)
    assert found.source.kind == "query"


@pytest.mark.parametrize("bundled", [False, True], ids=["resources", "bundles"])
def test_the_documented_fhir_query_gives_one_unit(tmp_path: Path, bundled: bool) -> None:
    data = write_fhir(tmp_path / "fhir", resources(SIXTY), bundled)
    found = read(data, FHIR_SPEC, documented("A FHIR export"))
    require_equal(found, reference(by_id(SIXTY), "years"), tolerance=1e-3)


def test_a_second_unit_shows_in_the_profile(tmp_path: Path) -> None:
    """In one unit all values fit. Mixed units are refused. A unit that the query does not list counts as missing."""
    data = write_fhir(tmp_path / "fhir", resources(SIXTY), bundled=False)
    query = documented("A FHIR export")
    spec = FHIR_SPEC
    mixed = query.replace("WHEN 'umol/L' THEN 0.01131", "WHEN 'umol/L' THEN 1")
    lacking = query.replace("WHEN 'umol/L' THEN 0.01131 ", "")
    profiles = {}
    for name, mapping in (("right", query), ("mixed", mixed), ("lacking", lacking)):
        profile = kind_of(spec.data).profile(read(data, spec, mapping), spec)
        assert isinstance(profile, TableProfile)
        profiles[name] = profile.columns[2]
        assert sum(profiles[name].histogram) == profile.rows - profiles[name].missing
        asked = {one.key for one in profile.findings if one.column == "creatinine" and one.asks}
        assert ("mixed_units" in asked) == (name == "mixed")
    unmeasured = sum(math.isnan(one.latest) for one in SIXTY)
    assert (profiles["right"].missing, profiles["right"].outside) == (unmeasured, 0)
    assert profiles["lacking"].missing >= unmeasured
    assert profiles["mixed"].outside > 0 == profiles["mixed"].missing - unmeasured
    assert (profiles["mixed"].largest or 0.0) > PER_MG / 2
    assert profiles["mixed"].histogram[-1] >= profiles["mixed"].outside
    with raises_fault(DataError, "ColumnOutOfRange"):
        read_examples(data, spec.data, written(tmp_path, mixed))


def test_the_picture_of_a_table_is_the_owners_alone(tmp_path: Path) -> None:
    """A panel for each column; its bars are of the histogram's heights."""
    data, picture = write_omop(tmp_path / "omop", SIXTY), tmp_path / "picture.png"
    profile = kind_of(SPEC.data).profile(read(data, SPEC, documented("An OMOP export")), SPEC)
    assert isinstance(profile, TableProfile)
    write_histograms(picture, profile)
    assert picture.stat().st_mode & 0o077 == 0
    with Image.open(picture) as drawn:
        pixels = np.asarray(drawn.convert("RGB"))
    assert pixels.shape == (2 * HEIGHT, 2 * WIDTH, 3)
    sexes = (pixels[:HEIGHT, WIDTH:] == BAR).all(axis=2).sum(axis=0)
    males = sum(one.sex == "male" for one in SIXTY)
    first, second = sexes[MARGIN + 20], sexes[WIDTH - MARGIN - 20]
    assert first / second == pytest.approx((60 - males) / males, rel=0.1)


def test_each_form_of_data_gives_the_same_rows(tmp_path: Path) -> None:
    """A folder, one file, Parquet, a DuckDB file, and another CSV dialect."""
    import duckdb

    frame = pd.DataFrame({"id": [3, 1, 2], "age": [50.5, 60.0, np.nan], "sick": ["no", "yes", "no"]})
    spec = parse_task_spec(
        b'name = "x"\n[data]\nlabel = "sick"\nclasses = ["no", "yes"]\n'
        b'features = [{ name = "age", min = 0, max = 120 }]\n[model]\nname = "logistic"\n'
    )
    sql = with_sql("SELECT * FROM Rows ORDER BY id")
    sql += '[columns]\nsick = { column = "sick", codes = { no = 0, yes = 1 } }\n'
    for name in ("csv", "parquet", "other"):
        (tmp_path / name).mkdir()
    frame.to_csv(tmp_path / "csv" / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "parquet" / "ROWS.parquet")
    frame.to_csv(tmp_path / "other" / "rows.csv", index=False, sep=";", decimal=",")
    with duckdb.connect(str(tmp_path / "w.duckdb")) as made:
        made.execute("CREATE TABLE rows (id INT, age DECIMAL(5, 1), sick TEXT)")
        made.executemany("INSERT INTO rows VALUES (?, ?, ?)", [[3, 50.5, "no"], [1, 60, "yes"], [2, None, "no"]])
    other = sql.replace("[query]", '[query]\ndelimiter = ";"\ndecimal = ","')
    for data, mapping in (
        ("csv", sql), ("csv/rows.csv", sql), ("parquet", sql), ("w.duckdb", sql), ("other", other),
    ):  # fmt: skip
        found = kind_of(spec.data).read(tmp_path / data, spec.data, written(tmp_path, mapping))
        np.testing.assert_equal(found.values["age"], [60.0, np.nan, 50.5])
        assert found.labels.tolist() == [1, 0, 0]


def test_texts_come_from_a_query(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    pd.DataFrame({"id": [1, 2], "note": ["  two words ", "  Zwei\nW\u00f6rter"], "d": ["o.B.", "path"]}).to_csv(
        folder / "n.csv", index=False
    )
    mapping = with_sql("SELECT note, d FROM n ORDER BY id")
    mapping += '[columns]\nfound = { column = "d", codes = { "o.B." = "healthy", path = "ill" } }\n'
    found = read_examples(folder, TEXTS.data, written(tmp_path, mapping))
    assert isinstance(found, TextSet)
    assert (found.texts, found.labels.tolist()) == (("two words", "Zwei\nWörter"), [0, 1])


def test_a_finished_model_reads_a_query_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So labels and rows are of one result, whatever happens to the data between two runs."""
    from consilium_client.data.query.rows import Queried

    runs = Counter[str]()
    run = Queried.rows

    def counted(self: Queried):  # type: ignore[no-untyped-def]
        runs["query"] += 1
        return run(self)

    monkeypatch.setattr(Queried, "rows", counted)
    data = write_omop(tmp_path / "omop", SIXTY)
    mapping = parse_mapping(documented("An OMOP export").encode(), SPEC.data)
    used = kind_of(SPEC.data).in_use(data, SPEC.data, Use(mapping, "person_id", labelled=True))
    assert used.examples.labels.tolist() == [int(one.ill) for one in SIXTY]
    assert used.own == tuple(str(one.id) for one in SIXTY)
    assert runs["query"] == 1


def test_rows_keep_their_checks_and_places(tmp_path: Path) -> None:
    """The same faults as a file's, at a row of the query; and remarks need the same answers."""
    data = write_omop(tmp_path / "omop", SIXTY)
    query = documented("An OMOP export")
    with raises_fault(CellError, "CodeUnknown", match=r"row \d+ of the query, column sex"):
        read(data, SPEC, query.replace('"8532" = "female"', '"1" = "female"'))
    with raises_fault(CellError, "ValueIsDate", match=r"row 1 of the query, column creatinine \(seen in the file\)"):
        read(data, SPEC, query.replace("AS died", "AS died, any_value(day) AS seen") + 'creatinine = "seen"\n')
    twice = tomllib.loads(query)
    twice["query"]["sql"] = f"SELECT cohort.* FROM ({twice['query']['sql']}) cohort, range(2)"
    with raises_fault(DataError, "RemarksUnanswered"):
        admitted(data, SPEC, written(tmp_path, tomli_w.dumps(twice)), {})


def test_the_same_files_give_the_same_order(tmp_path: Path) -> None:
    data = write_omop(tmp_path / "omop", patients(3000))
    query = documented("An OMOP export").replace(" ORDER BY person_id", "")
    first, second = (read(data, SPEC, query) for _ in range(2))
    assert first.patients == second.patients
    np.testing.assert_equal(first.values["creatinine"], second.values["creatinine"])


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ('[query]\nsql = ""\n', "at least 1 character"),
        ('[query]\nsql = "SELECT 1"\nseconds = 0\n', "greater than or equal to 1"),
        ('[query]\nsql = "SELECT 1"\n[file]\nheader = false\n', "only missing and patient"),
        ('[query]\nsql = "SELECT 1"\n[file]\ndelimiter = ";"\n', "only missing and patient"),
        ('[query]\nsql = "SELECT 1"\nserver = "postgresql://x"\n', "server"),
    ],
)  # fmt: skip
def test_a_malformed_query_section_is_refused(tmp_path: Path, mapping: str, why: str) -> None:
    with raises_fault(DataError, "MappingInvalid", match=why):
        read_mapping(written(tmp_path, mapping), SPEC.data)


def test_others_get_a_mapping_without_the_query() -> None:
    mapping = parse_mapping(documented("An OMOP export").encode(), SPEC.data)
    assert mapping.without_query().query is None
    assert mapping.without_query().columns == mapping.columns
    assert Mapping().without_query() == Mapping()
