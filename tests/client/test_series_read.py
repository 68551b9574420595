"""Series become stays in steps: as pandas makes them, from files of any form and order, and bad ones are refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_client.data.series.kind import KIND
from consilium_client.data.series.stays import Stays, carried
from consilium_client.data.standardise import Standardiser, public_sums, sums_of
from consilium_client.data.table import blocks
from consilium_client.data.use import Use
from consilium_client.errors import DataError
from consilium_client.hospital.training import held_out
from consilium_core.kinds import of_kind
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault
from series_files import SCHEMA, answers, drawn, folder_of, parsed, raw_of, resampled, stays_of, write

HEAD = "stay,time,heart_rate,lactate\n"
GOOD = HEAD + "1,0.5,80,\n1,3,,2.5\n2,1,90,1\n"
OUTCOMES = "stay,died\n1,0\n2,1\n"
SECRET = "Mustermann"


@pytest.mark.parametrize("seed", range(5))
def test_steps_have_the_last_values_as_pandas_has_them(seed: int, tmp_path: Path) -> None:
    measurements = drawn(seed)
    found = stays_of(write(tmp_path / "s", measurements, answers()))
    low, high = np.array([[0.0, 0.0], [250.0, 30.0]])
    expected = resampled(measurements, 12) / (high - low)[:, None]
    np.testing.assert_array_equal(found.values, expected.astype(np.float32))
    assert found.labels.tolist() == answers()["died"].to_list()
    filled = pd.DataFrame(expected.reshape(24, 6)).ffill(axis=1).to_numpy().reshape(12, 2, 6)
    np.testing.assert_array_equal(carried(found.values), filled.astype(np.float32))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_neither_order_nor_form_of_the_file_matters(
    tmp_path_factory: pytest.TempPathFactory, seed: int, random: object
) -> None:
    """Also with several values at one time, of which the largest counts."""
    place = tmp_path_factory.mktemp("forms")
    measurements = drawn(seed)
    again = measurements.assign(heart_rate=measurements["heart_rate"] + 1)
    both = pd.concat([measurements, again])
    shuffled = both.sample(frac=1, random_state=seed)
    narrow = both.melt(["stay", "time"], var_name="item", value_name="number").sample(frac=1, random_state=seed)
    first = stays_of(write(place / "a", both, answers()))
    others = [
        stays_of(write(place / "b", shuffled, answers())),
        stays_of(write(place / "c", shuffled, answers(), "parquet", row_group_size=7)),
        stays_of(write(place / "d", shuffled, answers(), quoting=1)),
        stays_of(write(place / "e", narrow, answers()), mapping='[file]\nvariable = "item"\nvalue = "number"\n'),
    ]
    for other in others:
        np.testing.assert_array_equal(other.values, first.values)
        assert list(other.row_bytes()) == list(first.row_bytes())
        assert list(other.contents()) == list(first.contents())
    raws = [raw_of(place / name) for name in "abcd"]
    assert {(raw.ambiguous, raw.measured.before, raw.measured.after) for raw in raws} == {
        (raws[0].ambiguous, raws[0].measured.before, raws[0].measured.after)
    }
    assert raws[0].ambiguous > 0


CELLS = st.sampled_from([
    "1", " 2.5", "-0", "+3", "1e2", ".5", "5.", "", " ", "NA", "?", "1_0", "0x1", "inf", "nan", "7,5", '"8"', '"9"x',
    "é", "1e400", "-9", "1e-320", "0.1", "\t4", "1e5000", "Infinity", "9" * 40,
])  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["1", "2", "2.0", "3", "", '"1"']), CELLS, CELLS), min_size=1, max_size=4))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_many_rows_at_once_are_read_as_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, end: str, rows: list[tuple[str, str, str]]
) -> None:
    """Any odd cell gives the same numbers, or the same error in the same line."""
    lines = [HEAD.strip(), "1,1,80,2", *(f"{stay},1,{first},{second}" for stay, first, second in rows), "2,1,5,1", ""]
    path = folder_of(tmp_path_factory.mktemp("odd"), end.join(lines))
    mapping = '[file]\nmissing = ["?", "NA", "-9"]\n'
    found = _told(lambda: raw_of(path, mapping=mapping).stays.values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks.CsvBlock, "columns", lambda self: None)
        np.testing.assert_equal(_told(lambda: raw_of(path, mapping=mapping).stays.values), found)


def _told(read: Callable[[], object]) -> object:
    try:
        return read()
    except DataError as error:
        return str(error)


def test_small_blocks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "s", drawn(1), answers())
    whole = stays_of(path).values
    for size in (1, 30, 500):
        monkeypatch.setattr(blocks, "BLOCK", size)
        np.testing.assert_array_equal(stays_of(path).values, whole)
    raw = (path / "measurements.csv").read_text().rstrip("\n") + f"\n1,2,{SECRET},1\n"
    (path / "measurements.csv").write_text(raw)
    with raises_fault(DataError, "ValueNotNumeric", f"line {raw.count(chr(10))}, column heart_rate"):
        stays_of(path)


def parquet(**columns: object) -> bytes:
    pyarrow.parquet.write_table(pyarrow.table(columns), stream := io.BytesIO())
    return stream.getvalue()


LARGE = SeriesSchema.model_validate({
    "kind": "series", "label": "died", "classes": ["no", "yes"], "steps": 1024,
    "features": [{"name": f"v{at}", "min": 0, "max": 1} for at in range(256)],
})  # fmt: skip

BAD: dict[str, tuple[str | bytes, str, str, str]] = {  # what is wrong: measurements, outcomes, error, its place
    "a text for a number": (
        f"{HEAD}1,1,{SECRET},2\n", OUTCOMES, "ValueNotNumeric", "measurements.csv, line 2, column heart_rate",
    ),
    "a decimal comma": (f'{HEAD}1,1,80,2\n1,1,"80,5",2\n', OUTCOMES, "DecimalMarkWrong", "line 3, column heart_rate"),
    "no finite number": (f"{HEAD}1,1,inf,2\n", OUTCOMES, "ValueNotFinite", "line 2, column heart_rate"),
    "a clock's time": (f"{HEAD}1,07:30,80,2\n", OUTCOMES, "ValueIsDate", "line 2, column time"),
    "no time": (f"{HEAD}1,1,80,2\n1,,80,2\n", OUTCOMES, "TimeMissing", "line 3, column time"),
    "no stay": (f"{HEAD}1,1,80,2\n ,1,80,2\n", OUTCOMES, "StayMissing", "measurements.csv, line 3, column stay"),
    "no stay in the outcomes": (GOOD, "stay,died\n1,0\n?,1\n", "StayMissing", "outcomes.csv, line 3, column stay"),
    "a stay twice": (GOOD, "stay,died\n1,0\n2,1\n1.0,1\n", "StayTwice", "outcomes.csv, line 4, column stay"),
    "no such class": (GOOD, "stay,died\n1,0\n2,3\n", "LabelOutOfSchema", "outcomes.csv, line 3, column died"),
    "no answer": (GOOD, "stay,died\n1,0\n2,\n", "LabelOutOfSchema", "outcomes.csv, line 3, column died"),
    "a column too many": (f"{HEAD.strip()},name\n1,1,80,2,x\n", OUTCOMES, "ColumnsWrong", "unexpected: name"),
    "a column too many in the outcomes": (GOOD, "stay,died,name\n1,0,x\n", "ColumnsWrong", "unexpected: name"),
    "a column too few": ("stay,time,heart_rate\n1,1,80\n", OUTCOMES, "ColumnsWrong", "missing: lactate"),
    "no header": ("1,1,80,2\n", OUTCOMES, "HeaderMissing", "line 1"),
    "a line too short": (f"{HEAD}1,1,80,2\n1,2,80\n", OUTCOMES, "LineWidthWrong", "line 3"),
    "a quotation mark that stays open": (f'{HEAD}1,1,80,2\n1,2,"80,2\n', OUTCOMES, "QuoteNotClosed", "line 3"),
    "a zero byte": (f"{HEAD}1,1,8\0,2\n", OUTCOMES, "NullByte", "line 2"),
    "another encoding": (HEAD.encode() + b"1,1,80,2\n1,2,\xfc,2\n", OUTCOMES, "EncodingWrong", "line 3"),
    "a long cell": (f"{HEAD}1,1,{'9' * 140_000},2\n", OUTCOMES, "LineTooLong", "line 2"),
    "a workbook": (b"PK\x03\x04", OUTCOMES, "FileKindWrong", "Excel"),
    "half a Parquet file": (parquet(stay=[1], time=[1.0])[:40], OUTCOMES, "ParquetUnreadable", "measurements.csv"),
    "points in time": (
        parquet(stay=[1], time=[pd.Timestamp("2026-01-01")], heart_rate=[1.0], lactate=[1.0]), OUTCOMES,
        "ColumnTypeWrong", "column time",
    ),
    "NaN in Parquet": (
        parquet(stay=[1, 2], time=[1.0, 1.0], heart_rate=[1.0, np.nan], lactate=[1.0, None]), OUTCOMES,
        "ValueNotFinite", "row 2, column heart_rate",
    ),
    "no rows": (HEAD, OUTCOMES, "ColumnAllMissing", "column heart_rate"),
    "no stays": (GOOD, "stay,died\n", "DataFileEmpty", "outcomes.csv"),
    "a variable that nobody has": (f"{HEAD}1,1,80,\n2,1,80,\n", OUTCOMES, "ColumnAllMissing", "column lactate"),
    "other names of stays": (f"{HEAD}A1,1,80,1\n", OUTCOMES, "ColumnAllMissing", "column heart_rate"),
    "times in minutes": (f"{HEAD}1,600,80,1\n2,900,80,1\n", OUTCOMES, "ColumnAllMissing", "column heart_rate"),
    "another unit": (HEAD + "1,1,800,2\n" * 12, OUTCOMES, "ColumnOutOfRange", "column heart_rate"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_series_are_refused_with_their_place(what: str, tmp_path: Path) -> None:
    measurements, outcomes, name, place = BAD[what]
    with raises_fault(DataError, name, place) as caught:
        stays_of(folder_of(tmp_path / "s", measurements, outcomes))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("break_", "name"),
    [
        (lambda path: (path / "outcomes.csv").unlink(), "DataFileMissing"),
        (lambda path: (path / "measurements.csv").rename(path / "other.csv"), "DataFileMissing"),
        (lambda path: (path / "measurements.parquet").write_bytes(b""), "DataFileMissing"),
    ],
)
def test_a_folder_has_one_file_of_each(break_: Callable[[Path], object], name: str, tmp_path: Path) -> None:
    break_(path := folder_of(tmp_path / "s", GOOD))
    with raises_fault(DataError, name):
        stays_of(path)


def test_more_values_than_fit_are_refused_before_they_are_read(tmp_path: Path) -> None:
    outcomes = "stay,died\n" + "".join(f"{at},0\n" for at in range(2_100))
    with raises_fault(DataError, "SeriesTooLarge"):
        stays_of(folder_of(tmp_path / "s", GOOD, outcomes), LARGE)


def test_times_outside_and_unlisted_stays_are_ignored_and_counted(tmp_path: Path) -> None:
    rows = "1,-0.5,10,1\n1,0,20,\n1,11.9,30,2\n1,12,40,\n3,1,50,1\n"
    raw = raw_of(folder_of(tmp_path / "s", HEAD + rows))
    assert (raw.measured.before, raw.measured.after, raw.measured.unlisted) == (2, 1, 2)
    np.testing.assert_array_equal(raw.stays.values[0, 0] * 250, np.array([20, *[np.nan] * 4, 30], np.float32))
    assert np.isnan(raw.stays.values[1]).all()
    assert raw.measured.count.tolist() == [2, 1]
    many = folder_of(tmp_path / "many", HEAD + rows + "1,-0.5,10,1\n" * 30)
    assert stays_of(many).rows == 2  # without a clock, a remark alone


def test_a_mapping_converts_units_times_and_codes(tmp_path: Path) -> None:
    raw = f"case;minute;hr;lact\n{SECRET};30;-1;9,0\n{SECRET};90;80;> 25\n"
    mapping = """
[file]
delimiter = ";"
decimal = ","
patient = "person"
[columns]
stay = "case"
time = { column = "minute", scale = 0.016666666666666666 }
heart_rate = { column = "hr", missing = ["-1"] }
lactate = { column = "lact", scale = 0.111, codes = { "> 25" = 25 } }
died = { column = "dead", codes = { ja = 1, nein = 0 } }
"""
    path = folder_of(tmp_path / "s", raw, f"case;dead;person\n{SECRET};ja;7\n")
    found = raw_of(path, mapping=mapping)
    assert found.stays.labels.tolist() == [1]
    np.testing.assert_allclose(found.stays.values[0, :, 0], [80 / 250, 25 / 30])
    assert found.measured.least.tolist() == [80, pytest.approx(0.999)]
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ('[file]\nvariable = "item"\n', "need both"),
        ("[columns]\ntime = { absent = true }\n", "time may not be absent"),
        ('[columns]\nstay = { column = "id", codes = { a = 1 } }\n', "stay has no codes"),
        ('[columns]\nheart_rate = { born = "a", on = "b" }\n', "heart_rate is no age"),
        ('[file]\nvariable = "a"\nvalue = "b"\n[columns]\nheart_rate = "7"\nlactate = "7.0"\n', "one name"),
        ('[columns]\nheart_rate = "x"\nlactate = "x"\n', "same column"),
    ],
)
def test_mappings_that_do_not_fit_are_refused(mapping: str, why: str) -> None:
    with raises_fault(DataError, "MappingInvalid", why):
        parsed(mapping)


def test_patients_stay_together_when_stays_are_held_out(tmp_path: Path) -> None:
    outcomes = answers(60).assign(person=[f"p{at // 3}" for at in range(60)])
    path = write(tmp_path / "s", drawn(3, stays=60), outcomes)
    raw = raw_of(path, mapping='[file]\npatient = "person"\n')
    out = held_out(raw.stays, 0.4, bytes(32))
    assert 0 < out.sum() < 60
    assert (out.reshape(20, 3) == out[::3, None]).all()
    later = write(tmp_path / "t", drawn(4, stays=60), outcomes)  # with other measurements
    np.testing.assert_array_equal(
        out, held_out(raw_of(later, mapping='[file]\npatient = "person"\n').stays, 0.4, bytes(32))
    )


def test_sums_are_of_stays_and_never_above_their_number(tmp_path: Path) -> None:
    stays = stays_of(write(tmp_path / "s", drawn(5), answers()))
    found = sums_of(stays, SCHEMA).reshape(3, 2)
    each = np.nanmean(stays.values.astype(np.float64), axis=2)
    np.testing.assert_allclose(found[0], (~np.isnan(each)).sum(axis=0))
    np.testing.assert_allclose(found[1], np.nansum(each, axis=0))
    np.testing.assert_allclose(found[2], np.nansum(np.nanmean(stays.values.astype(np.float64) ** 2, axis=2), axis=0))
    assert (found <= stays.rows).all()
    assert found.size == public_sums(SCHEMA).size == SCHEMA.statistics_values


def test_inputs_are_carried_forward_with_where_they_were_measured(tmp_path: Path) -> None:
    stays = stays_of(folder_of(tmp_path / "s", HEAD + "1,2.5,125,\n1,7,250,15\n2,0,0,0\n"))
    found = Standardiser(np.array([0.5, 0.5]), np.array([2.0, 2.0])).transform_stays(stays)
    assert found[0].tolist() == [[0, 0, 0, 1, 1, 1], [0] * 6, [0, 1, 0, 1, 0, 0], [0, 0, 0, 1, 0, 0]]
    assert found[1, :2].tolist() == [[-1] * 6] * 2


def test_a_finished_model_reads_stays_without_outcomes_and_minds_ranges(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "s", HEAD + "b,1,80,\na,1,300,\n")
    (path / "outcomes.csv").unlink()
    with raises_fault(DataError, "ValueOutOfRange", "line 3, column heart_rate"):
        KIND.in_use(path, SCHEMA, Use())
    used = KIND.in_use(path, SCHEMA, Use(clamp=True))
    assert used.names == ("b", "a")
    np.testing.assert_allclose(of_kind(Stays, used.examples).values[:, 0, 0], np.array([80 / 250, 1]))
    (path / "outcomes.csv").write_text("stay,ward\na,7\n")
    alone = KIND.in_use(path, SCHEMA, Use(clamp=True, own="ward"))
    assert (alone.names, alone.own) == (("a",), ("7",))
