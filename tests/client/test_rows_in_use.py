"""Rows for a finished model: labels may be absent, other columns too, and values outside its range are refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from consilium_chain.tasks.data_schemas import TableSchema, TextSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_client.data.examples import REQUEST
from consilium_client.data.kinds import kind_of
from consilium_client.data.mapping import parse_mapping
from consilium_client.data.table.ranges import ROUNDING, require_within
from consilium_client.data.table.reader import Table
from consilium_client.data.text.reader import TextSet
from consilium_client.data.use import NO_VALUE, Use, Used
from consilium_client.errors import CellError, DataError, FolderError, RangeError
from consilium_core.kinds import of_kind
from examples_read import read_table
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from raised_faults import raises_fault

SCHEMA = TableSchema.model_validate({
    "label": "ill", "classes": ["no", "yes"],
    "features": [
        {"name": "creatinine", "min": 0.1, "max": 20.0}, {"name": "wbc", "min": 0.0, "max": 200.0},
        {"name": "sex", "kind": "category", "values": [0, 1, 2]},
    ],
})  # fmt: skip
NOTES = TextSchema.model_validate({"kind": "text", "text": "note", "label": "found", "classes": ["healthy", "ill"]})
SHADES = ImageSchema.model_validate({"kind": "images", "classes": ["no", "yes"], "height": 8, "width": 8})
GERMAN = """
[file]
delimiter = ";"
decimal = ","
[columns]
creatinine = { column = "Krea (µmol/l)", scale = 0.0113 }
wbc = "Leukozyten"
sex = { column = "Geschlecht", codes = { m = 1, w = 0 } }
ill = "Diagnose"
"""


def put(folder: Path, text: str, name: str = "rows.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def in_use(path: Path, schema: Any = SCHEMA, **use: Any) -> Used:
    return kind_of(schema).in_use(path, schema, Use(**use))


def features(used: Used) -> np.ndarray[Any, Any]:
    return of_kind(Table, used.examples).features


# --- tables ----------------------------------------------------------------------------------------------------------


def test_rows_are_encoded_as_a_hospitals_rows_are_with_or_without_a_label(tmp_path: Path) -> None:
    bare = put(tmp_path, "wbc,sex,creatinine\n4.5,1,1.1\n,2,?\n200,,0.1\n")
    labelled = put(tmp_path, "wbc,sex,creatinine,ill\n4.5,1,1.1,0\n,2,?,1\n200,,0.1,1\n", "labelled.csv")
    hospitals = read_table(labelled, SCHEMA)
    for path in (bare, labelled):
        used = in_use(path)
        assert np.array_equal(features(used), hospitals.features, equal_nan=True)
        assert used.examples.labels.tolist() == [0, 0, 0]
        assert (used.own, used.names) == (None, None)
    assert in_use(labelled, labelled=True).examples.labels.tolist() == [0, 1, 1]


def test_a_label_is_not_read_unless_it_is_asked_for(tmp_path: Path) -> None:
    path = put(tmp_path, "wbc,sex,creatinine,ill\n4.5,1,1.1,pending\n")
    assert in_use(path).examples.rows == 1
    with raises_fault(CellError, "LabelOutOfSchema"):
        in_use(path, labelled=True)


def test_an_own_column_is_kept_as_text_and_others_are_ignored(tmp_path: Path) -> None:
    path = put(tmp_path, "patient,site,wbc,sex,creatinine\np1,Bern,4,1,1\np2,,5,0,1\n")
    assert in_use(path, own="site").own == ("Bern", NO_VALUE)
    assert in_use(path, own="patient").own == ("p1", "p2")
    assert in_use(path, own="sex").own == ("1", "0")  # one that the model reads
    with raises_fault(DataError, "ColumnsWrong", "missing: clinic"):
        in_use(path, own="clinic")


def test_parquet_has_the_same_rows(tmp_path: Path) -> None:
    columns = {"site": [7, 8], "wbc": [4.5, None], "sex": ["1", "?"], "creatinine": [1.1, 2.0]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet")
    path = put(tmp_path, "site,wbc,sex,creatinine\n7,4.5,1,1.1\n8,,?,2.0\n")
    for own in ("site", "wbc"):
        parquet, csv = (in_use(one, own=own) for one in (tmp_path / "rows.parquet", path))
        assert np.array_equal(features(parquet), features(csv), equal_nan=True)
        assert parquet.own == csv.own


def test_a_mapping_maps_rows_without_its_label(tmp_path: Path) -> None:
    mapping = parse_mapping(GERMAN.encode(), SCHEMA)
    path = put(tmp_path, "Klinik;Krea (µmol/l);Leukozyten;Geschlecht\nBern;97,3;4,5;w\n")
    used = in_use(path, mapping=mapping, own="Klinik")
    plain = in_use(put(tmp_path, f"creatinine,wbc,sex\n{97.3 * 0.0113!r},4.5,0\n", "plain.csv"))
    assert np.array_equal(features(used), features(plain))
    assert used.own == ("Bern",)


def test_without_a_header_the_own_column_is_a_position(tmp_path: Path) -> None:
    text = "[file]\nheader = false\n[columns]\ncreatinine = 2\nwbc = 3\nsex = { absent = true }\nill = 4\n"
    mapping = parse_mapping(text.encode(), SCHEMA)
    path = put(tmp_path, "Bern,1.0,4.5,1\nBasel,2.0,5.5,0\n")
    assert in_use(path, mapping=mapping, own="1", labelled=True).own == ("Bern", "Basel")
    assert in_use(path, mapping=mapping).examples.rows == 2
    for own in ("site", "9", "0"):
        with raises_fault(DataError, "ColumnsWrong"):
            in_use(path, mapping=mapping, own=own)


OUTSIDE = [
    ("4.5,1,150", "creatinine", "above", (0.1, 20.0)),
    ("-1,1,1", "wbc", "below", (0.0, 200.0)),
    ("200.1,1,1", "wbc", "above", (0.0, 200.0)),
    ("1e300,1,1", "wbc", "above", (0.0, 200.0)),
]


@pytest.mark.parametrize(("row", "column", "side", "bounds"), OUTSIDE)
def test_a_value_outside_the_range_is_refused_with_its_place_and_bounds(
    tmp_path: Path, row: str, column: str, side: str, bounds: tuple[float, float]
) -> None:
    path = put(tmp_path, f'wbc,sex,creatinine,note\n4,1,1,"two\nlines"\n\n{row},\n')
    with raises_fault(RangeError, "ValueOutOfRange") as caught:
        in_use(path)
    assert {name: caught.value.values[name] for name in ("row", "column", "side")} == {
        "row": 5, "column": column, "side": side,
    }  # fmt: skip
    assert (caught.value.values["low"], caught.value.values["high"]) == bounds
    assert f"{path}, line 5, column {column}: the value is {side}" in str(caught.value)
    assert "--clamp" in str(caught.value)
    assert "150" not in str(caught.value)
    assert "1e300" not in str(caught.value)


def test_a_foreign_code_is_refused_and_names_those_that_the_model_knows(tmp_path: Path) -> None:
    path = put(tmp_path, "wbc,sex,creatinine\n4,1,1\n4,7.25,1\n")
    with raises_fault(RangeError, "CodeOutOfRange", r"line 3, column sex: .*\(0, 1, 2\)") as caught:
        in_use(path)
    assert "7.25" not in str(caught.value)


def test_clamping_has_to_be_asked_for_and_is_that_of_training(tmp_path: Path) -> None:
    rows = "150,1,-1\n4,7,300\n"
    path = put(tmp_path, f"creatinine,sex,wbc\n{rows}")
    hospitals = put(tmp_path, "creatinine,sex,wbc,ill\n150,1,-1,0\n4,7,300,1\n", "hospital.csv")
    clamped = features(in_use(path, clamp=True))
    assert np.array_equal(clamped, read_table(hospitals, SCHEMA).features, equal_nan=True)
    assert (clamped[0, 0], clamped[0, 1], clamped[1, 1], math.isnan(clamped[1, 2])) == (1.0, 0.0, 1.0, True)


@given(st.floats(allow_nan=True, allow_infinity=False))
def test_exactly_the_range_passes_with_a_margin_for_rounding(value: float) -> None:
    feature = SCHEMA.features[0]
    assert feature.kind == "numeric"
    margin = ROUNDING * (feature.max - feature.min)
    if math.isnan(value) or feature.min - margin <= value <= feature.max + margin:
        require_within(value, feature, REQUEST, 1)
    else:
        with pytest.raises(RangeError):
            require_within(value, feature, REQUEST, 1)


@pytest.mark.parametrize("bound", [0.1, 20.0])
def test_a_bound_in_32_bits_is_not_outside(bound: float) -> None:
    require_within(float(np.float32(bound)), SCHEMA.features[0], REQUEST, 1)


def test_a_column_without_a_value_is_missing_in_every_row(tmp_path: Path) -> None:
    """Training asks for `absent = true`; a single patient may lack a value."""
    used = in_use(put(tmp_path, "wbc,sex,creatinine\n4,1,\n"))
    assert np.isnan(features(used)[0, 0])


# --- texts and images ------------------------------------------------------------------------------------------------


def test_texts_need_no_label(tmp_path: Path) -> None:
    path = put(tmp_path, "id,note\n1,fever\n2, cough \n")
    used = in_use(path, NOTES, own="id")
    assert (of_kind(TextSet, used.examples).texts, used.own) == (("fever", "cough"), ("1", "2"))
    labelled = put(tmp_path, "note,found\nfever,ill\nwell,healthy\n", "labelled.csv")
    assert in_use(labelled, NOTES, labelled=True).examples.labels.tolist() == [1, 0]


def test_a_folder_needs_no_labels_and_names_its_files(tmp_path: Path) -> None:
    (tmp_path / "texts" / "new").mkdir(parents=True)
    put(tmp_path / "texts", "b text", "b.txt")
    put(tmp_path / "texts" / "new", "a text", "a.txt")
    put(tmp_path / "texts", "file,label\n", "labels.csv")
    used = in_use(tmp_path / "texts", NOTES)
    assert (used.names, of_kind(TextSet, used.examples).texts) == (("b.txt", "new/a.txt"), ("b text", "a text"))
    with raises_fault(DataError, "ColumnsWrong", "missing: site"):
        in_use(tmp_path / "texts", NOTES, own="site")
    put(tmp_path / "texts", "no text", "c.pdf")
    with raises_fault(FolderError, "FileUnexpected", r"c\.pdf"):
        in_use(tmp_path / "texts", NOTES)
    (tmp_path / "empty").mkdir()
    with raises_fault(DataError, "DataFileEmpty"):
        in_use(tmp_path / "empty", NOTES)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "a.txt").symlink_to(tmp_path / "texts" / "b.txt")
    with raises_fault(FolderError, "LeadsOutside"):
        in_use(tmp_path / "linked", NOTES)


def test_images_need_no_label(tmp_path: Path) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (2, 8, 8), dtype=np.uint8)
    for name, one in zip(("x.png", "y.png"), pixels, strict=True):
        (tmp_path / "yes").mkdir(exist_ok=True)
        Image.fromarray(one).save(tmp_path / "yes" / name)
    used = in_use(tmp_path, SHADES)
    assert (used.names, used.examples.labels.tolist()) == (("yes/x.png", "yes/y.png"), [0, 0])
    labelled = in_use(tmp_path, SHADES, labelled=True)
    assert labelled.examples.labels.tolist() == [1, 1]
    assert list(labelled.examples.contents()) == list(used.examples.contents()) == [one.tobytes() for one in pixels]
    with raises_fault(DataError, "ColumnsWrong", "missing: site"):
        in_use(tmp_path, SHADES, own="site")


def test_images_have_no_mapping() -> None:
    with raises_fault(DataError, "MappingInvalid", "leave the mapping out"):
        parse_mapping(b"", SHADES)
