"""Dates as the times of a series become the same stays as hours since the stay's begin, and bad dates are refused."""

from __future__ import annotations

import datetime
import pickle
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from consilium_client.data.clock import Clock
from consilium_client.data.series.kind import KIND
from consilium_client.data.table import blocks
from consilium_client.data.use import Use
from consilium_client.data_faults import CELLS
from consilium_client.errors import DataError
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault
from series_files import SCHEMA, answers, drawn, folder_of, parsed, raw_of, stays_of, write

BERLIN = ZoneInfo("Europe/Berlin")
SINCE = '[clock]\nsince = "intime"\nzone = "Europe/Berlin"\n'
FIRST = '[clock]\nfirst = true\nzone = "UTC"\n'
HEAD = "stay,time,heart_rate,lactate\n"
OUTCOMES = "stay,died,intime\n1,0,2021-03-04 13:22\n2,1,2021-03-05 01:00\n"
ROWS = "1,2021-03-04 13:22:59,80,2\n1,2021-03-04 17:00,,2.5\n2,2021-03-05T02:00,90,1\n"


def admitted(stays: int) -> list[pd.Timestamp]:
    """In Berlin; the clock is put forward or back during some stays, in none of its doubled hours."""
    days = pd.to_datetime(["2021-03-27 20:17", "2021-10-30 14:30", "2021-06-01 00:00"]).tz_localize(BERLIN)
    return [days[at % 3] for at in range(stays)]


def dated(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measurements and outcomes with dates, aware, without those of a doubled hour."""
    began = pd.Series(admitted(12), index=range(1, 13))
    times = began.loc[frame["stay"]].reset_index(drop=True) + pd.to_timedelta(frame["time"].to_numpy(), unit="h")
    local = times.dt.tz_localize(None)
    doubled = local.between("2021-10-31 02:00", "2021-10-31 03:00", inclusive="left")
    kept = ~doubled.to_numpy()
    return (
        frame.reset_index(drop=True).assign(time=times).loc[kept],
        answers().assign(intime=began.reset_index(drop=True)),
    )


@pytest.mark.parametrize("form", ["iso", "german", "narrow", "offsets", "parquet", "aware parquet"])
def test_dates_give_the_same_stays_as_hours(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = drawn(7)
    frame, outcomes = dated(hours)
    expected = stays_of(write(tmp_path / "hours", hours.reset_index(drop=True).loc[frame.index], answers()))
    mapping, kind = SINCE, "csv"
    if form == "offsets":
        mapping = '[clock]\nsince = "intime"\n'
    elif form == "aware parquet":
        mapping, kind = '[clock]\nsince = "intime"\n', "parquet"
    else:
        frame = frame.assign(time=frame["time"].dt.tz_localize(None))
        outcomes = outcomes.assign(intime=outcomes["intime"].dt.tz_localize(None))
        kind = "parquet" if form == "parquet" else kind
    if form == "german":
        pattern = "%d.%m.%Y %H:%M:%S"
        mapping += f'format = "{pattern}"\n'
        frame = frame.assign(time=frame["time"].dt.strftime(pattern))
        outcomes = outcomes.assign(intime=outcomes["intime"].dt.strftime(pattern))
    if form == "narrow":
        frame = frame.melt(["stay", "time"], var_name="item", value_name="number")
        mapping += '[file]\nvariable = "item"\nvalue = "number"\n'
    path = write(tmp_path / "dates", frame.sample(frac=1, random_state=3), outcomes, kind)
    found = stays_of(path, mapping=mapping)
    np.testing.assert_array_equal(found.values, expected.values)
    assert list(found.row_bytes()) == list(expected.row_bytes())
    monkeypatch.setattr(blocks, "BLOCK", 300)
    monkeypatch.setattr(blocks.CsvBlock, "columns", lambda self: None)
    monkeypatch.setattr(blocks.ParquetBlock, "columns", lambda self: None)
    np.testing.assert_array_equal(stays_of(path, mapping=mapping).values, expected.values)


def test_the_first_row_is_time_zero_whatever_it_measures(tmp_path: Path) -> None:
    """A row of another variable counts, and the order of rows does not."""
    rows = "stay,time,item,number\n1,2150-01-01 06:00,hr,80\n1,2150-01-01 05:00,weight,70\n1,2150-01-01 09:30,lac,2\n"
    mapping = FIRST + '[file]\nvariable = "item"\nvalue = "number"\n[columns]\nheart_rate = "hr"\nlactate = "lac"\n'
    found = raw_of(folder_of(tmp_path / "s", rows, "stay,died\n1,0\n2,1\n"), mapping=mapping)
    known = np.argwhere(~np.isnan(found.stays.values))
    assert known.tolist() == [[0, 0, 0], [0, 1, 2]]
    assert (found.measured.before, found.measured.twice) == (0, 0)


def test_no_date_is_left_in_stays(tmp_path: Path) -> None:
    """A day later, all that later steps can see of the stays is the same."""
    rows, outcomes = HEAD + ROWS, OUTCOMES
    before = raw_of(folder_of(tmp_path / "s", rows, outcomes), mapping=SINCE)
    for day in (5, 4):
        rows, outcomes = (text.replace(f"-03-0{day}", f"-03-0{day + 1}") for text in (rows, outcomes))
    later = raw_of(folder_of(tmp_path / "s", rows, outcomes), mapping=SINCE)
    assert pickle.dumps(later) == pickle.dumps(before)
    assert "2021" not in repr(before).replace(str(tmp_path), "")


def test_a_doubled_hour_is_counted_and_its_first_half_taken(tmp_path: Path) -> None:
    rows = HEAD + "1,2021-10-31 02:30,80,\n1,2021-10-31 03:30,90,1\n"
    path = folder_of(tmp_path / "s", rows, "stay,died,intime\n1,0,2021-10-31 00:30\n2,1,2021-10-31 02:59\n")
    raw = raw_of(path, mapping=SINCE)
    assert raw.measured.twice == 2
    assert np.argwhere(~np.isnan(raw.stays.values[0, 0])).ravel().tolist() == [1, 2], "2 and 4 hours after"


BAD = {  # what is wrong: measurements, outcomes, mapping, error, its place
    "another form": (f"{HEAD}1,04.03.2021 13:22,80,2\n", OUTCOMES, SINCE, "DateMalformed", "line 2, column time"),
    "a number": (f"{HEAD}1,2.5,80,2\n", OUTCOMES, SINCE, "DateMalformed", "line 2, column time"),
    "a day that is none": (f"{HEAD}1,2021-02-29 10:00,80,2\n", OUTCOMES, SINCE, "DateMalformed", "line 2, column time"),
    "no time": (f"{HEAD}{ROWS}1,,80,2\n", OUTCOMES, SINCE, "TimeMissing", "measurements.csv, line 5, column time"),
    "an offset beside others": (
        f"{HEAD}{ROWS}1,2021-03-04 14:00Z,1,1\n", OUTCOMES, SINCE, "ZoneTwice", "line 5, column time",
    ),
    "no zone at all": (HEAD + ROWS, OUTCOMES, '[clock]\nsince = "intime"\n', "ZoneMissing", "outcomes.csv, line 2"),
    "no zone among offsets": (
        f"{HEAD}1,2021-03-04 14:00+01:00,1,1\n{ROWS}", OUTCOMES, '[clock]\nfirst = true\n', "ZoneMissing", "line 3",
    ),
    "an hour that was skipped": (
        f"{HEAD}{ROWS}1,2021-03-28 02:30,80,2\n", OUTCOMES, SINCE, "TimeSkipped", "line 5, column time",
    ),
    "no admission": (
        HEAD + ROWS, OUTCOMES.replace("2021-03-05 01:00", ""), SINCE, "TimeMissing", "mes.csv, line 3, column intime",
    ),
    "a malformed admission": (
        HEAD + ROWS, OUTCOMES.replace("2021-03-05 01:00", "Friday"), SINCE, "DateMalformed", "line 3, column intime",
    ),
    "no column of admissions": (HEAD + ROWS, "stay,died\n1,0\n2,1\n", SINCE, "ColumnsWrong", "missing: intime"),
    "the discharge as admission": (
        HEAD + ROWS * 4, OUTCOMES.replace("-03-", "-04-"), SINCE, "ColumnOutOfRange", "before time zero",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_dates_are_refused_with_their_place_and_never_quoted(what: str, tmp_path: Path) -> None:
    measurements, outcomes, mapping, name, place = BAD[what]
    with raises_fault(DataError, name, place) as caught:
        stays_of(folder_of(tmp_path / "s", measurements, outcomes), mapping=mapping)
    for one in (caught.value, caught.value.__context__, caught.value.__cause__):
        assert "2021" not in str(one).replace(str(tmp_path), "")


def test_parquet_dates_without_a_clock_are_refused(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "s", "")
    (path / "measurements.csv").unlink()
    times = pyarrow.array([datetime.datetime(2021, 3, 4, 13)])
    columns = {"stay": [1], "time": times, "heart_rate": [80.0], "lactate": [2.0]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path / "measurements.parquet")
    with raises_fault(DataError, "ColumnTypeWrong", "column time: its type is timestamp"):
        stays_of(path)
    dated_value = pyarrow.table(columns | {"heart_rate": times})
    pyarrow.parquet.write_table(dated_value, path / "measurements.parquet")
    with raises_fault(DataError, "ColumnTypeWrong", "column heart_rate"):
        stays_of(path, mapping=FIRST)


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ("[clock]\n", "either since"),
        ('[clock]\nsince = "a"\nfirst = true\n', "either since"),
        ('[clock]\nfirst = true\nzone = "Berlin/Mitte"\n', "zone is unknown"),
        ('[clock]\nfirst = true\nzone = "../../etc/passwd"\n', "zone is unknown"),
        ('[clock]\nfirst = true\nzone = "UTC"\nformat = "%d.%m.%Y %I:%M"\n', "does not give a date and time"),
        ('[clock]\nfirst = true\nformat = "%Y-%m-%d %H:%M %Z"\n', "does not give a date and time"),
        ('[clock]\nfirst = true\nzone = "UTC"\nformat = "%H:%M"\n', "does not give a date and time"),
        ("[clock]\nsince = 3\n", "clock needs the name of its column"),
        (FIRST + '[columns]\ntime = { column = "t", scale = 2.0 }\n', "time has no scale"),
    ],
)
def test_clocks_that_mean_nothing_are_refused(mapping: str, why: str) -> None:
    with raises_fault(DataError, "MappingInvalid", why):
        parsed(mapping)


def test_a_unit_that_is_no_time_takes_no_dates() -> None:
    with raises_fault(DataError, "MappingInvalid", "dates become no visits"):
        parsed(FIRST, SCHEMA.model_copy(update={"unit": "visits"}))


def test_a_finished_model_needs_the_admissions_alone(tmp_path: Path) -> None:
    path, mapping = folder_of(tmp_path / "s", HEAD + ROWS, "stay,intime\n2,2021-03-05 01:00\n"), parsed(SINCE)
    used = KIND.in_use(path, SCHEMA, Use(mapping))
    assert used.names == ("2",)
    assert np.argwhere(~np.isnan(used.examples.values[0])).tolist() == [[0, 0], [1, 0]]  # type: ignore[attr-defined]
    (path / "outcomes.csv").unlink()
    with raises_fault(DataError, "DataFileMissing", "outcomes.csv"):
        KIND.in_use(path, SCHEMA, Use(mapping))
    first = KIND.in_use(path, SCHEMA, Use(parsed(FIRST)))
    assert first.names == ("1", "2")


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=30), st.datetimes().map(str), st.datetimes(timezones=st.timezones()).map(str)))
def test_any_cell_is_a_time_or_a_named_error(cell: str) -> None:
    for zone in (None, "Europe/Berlin", "America/St_Johns"):
        for form in (None, "%d.%m.%y %H:%M"):
            found = Clock(first=True, zone=zone, format=form).microseconds(cell)
            assert isinstance(found, float) or found in CELLS


@pytest.mark.parametrize("cell", ["0001-01-01 00:00", "9999-12-31 23:59:59.999999", "9999-12-31T23:00-23:59"])
def test_the_calendar_s_ends_are_times(cell: str) -> None:
    zone = None if cell[-6] == "-" else "Pacific/Apia"
    assert isinstance(Clock(first=True, zone=zone).microseconds(cell), float)
