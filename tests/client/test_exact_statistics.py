"""Exact statistics are given for a set of rows, and never again for nearly the same ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from consilium_chain.tasks.data_schemas import TableSchema, TextSchema
from consilium_chain.tasks.features import NumericFeature
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_client.data.examples import Examples
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.table.reader import Table
from consilium_client.data.text.reader import TextSet
from consilium_client.errors import ClientError
from consilium_client.privacy.exact_statistics import ExactStatisticsRecord
from consilium_core.errors import KeystoreError
from numpy.typing import NDArray
from raised_faults import raises_fault

ROWS, COLUMNS = 40, 5


def schema(**changes: float) -> TableSchema:
    features = [NumericFeature(name=f"x{at}", min=0, max=1 if at else changes.get("max", 1)) for at in range(COLUMNS)]
    stated = [one.model_copy(update={"mean": changes.get("mean")}) for one in features]
    return TableSchema(features=[*stated], label="ill", classes=["no", "yes"])


SCHEMA = schema()
RANDOM = np.random.default_rng(5)
TABLE = Table(RANDOM.uniform(size=(ROWS, COLUMNS)), RANDOM.integers(0, 2, ROWS))
TABLE.features[3, 2] = np.nan
IMAGES = ImageSet(RANDOM.integers(0, 256, (ROWS, 1, 8, 8), np.uint8), np.zeros(ROWS, np.int64))
TEXTS = TextSet(tuple(f"text {at}" for at in range(ROWS)), np.zeros(ROWS, np.int64))
IMAGE_SCHEMA = ImageSchema(kind="images", classes=["no", "yes"], height=8, width=8)
TEXT_SCHEMA = TextSchema(kind="text", label="found", classes=["no", "yes"])


def but(last: int, examples: Examples = TABLE) -> Examples:
    """Without the last rows."""
    return examples.chosen(np.arange(ROWS) < ROWS - last)


def table_of(features: NDArray[np.float64]) -> Table:
    return Table(features, TABLE.labels)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "statistics.jsonl"


@pytest.mark.parametrize(
    ("examples", "of"), [(TABLE, SCHEMA), (IMAGES, IMAGE_SCHEMA), (TEXTS, TEXT_SCHEMA)], ids=["rows", "images", "texts"]
)
def test_a_row_more_or_less_is_refused_and_counted_and_nothing_is_written(
    path: Path, examples: Examples, of: TableSchema | ImageSchema | TextSchema
) -> None:
    ExactStatisticsRecord(path).give("one", but(1, examples), of)
    before = path.read_bytes()
    for other, shared, differing in ((examples, ROWS - 1, 1), (but(4, examples), ROWS - 4, 3)):
        with raises_fault(ClientError, "StatisticsOverlap", match=r'task one .* statistics = "schema"') as caught:
            ExactStatisticsRecord(path).give("two", other, of)
        assert (caught.value.values["shared"], caught.value.values["differing"]) == (shared, differing)
        with raises_fault(ClientError, "StatisticsOverlap"):
            ExactStatisticsRecord(path).require_givable("two", other, of)
    assert path.read_bytes() == before


def test_the_same_rows_are_given_again_in_any_order_and_under_any_label(path: Path) -> None:
    ExactStatisticsRecord(path).give("one", TABLE, SCHEMA)
    order = RANDOM.permutation(ROWS)
    for task, again in (("two", Table(TABLE.features[order], 1 - TABLE.labels)), ("two", TABLE), ("one", TABLE)):
        ExactStatisticsRecord(path).require_givable(task, again, SCHEMA)
        ExactStatisticsRecord(path).give(task, again, SCHEMA)
    assert len(path.read_bytes().splitlines()) == 2  # a line a task
    with raises_fault(ClientError, "StatisticsOverlap", match=r"task one "):
        ExactStatisticsRecord(path).give("three", but(1), SCHEMA)


def test_other_rows_are_given_and_then_both_are_compared(path: Path) -> None:
    ledger = ExactStatisticsRecord(path)
    ledger.give("one", TABLE.chosen(np.arange(ROWS) < 20), SCHEMA)
    ledger.give("two", TABLE.chosen(np.arange(ROWS) >= 20), SCHEMA)
    with raises_fault(ClientError, "StatisticsOverlap", match=r"task two ") as caught:
        ledger.give("three", TABLE.chosen(np.arange(ROWS) >= 21), SCHEMA)
    assert caught.value.values["differing"] == 1


@pytest.mark.parametrize("moved", [1e-9, 2.0**-20])
def test_rows_of_slightly_other_values_are_no_other_rows(path: Path, moved: float) -> None:
    """As an export has them that rounds: with a row more, they would hide it."""
    ledger = ExactStatisticsRecord(path)
    ledger.give("one", but(1), SCHEMA)
    inside = np.clip(np.round(TABLE.features * 4096) / 4096, 0.01, 0.99)  # far from where a step ends
    fresh = ExactStatisticsRecord(path.with_name("other.jsonl"))
    fresh.give("one", table_of(inside), SCHEMA)
    with raises_fault(ClientError, "StatisticsOverlap", match="slightly other values") as caught:
        fresh.give("two", table_of(inside + moved), SCHEMA)
    assert caught.value.values["differing"] == 0
    with raises_fault(ClientError, "StatisticsOverlap"):
        ledger.give("two", table_of(TABLE.features + moved), SCHEMA)


def test_another_range_is_not_compared_and_refused_and_another_typical_value_changes_nothing(path: Path) -> None:
    ledger = ExactStatisticsRecord(path)
    ledger.give("one", but(1), SCHEMA)
    with raises_fault(ClientError, "StatisticsUncomparable", match="another schema"):
        ledger.give("two", table_of(TABLE.features / [1.01, 1, 1, 1, 1]), schema(max=1.01))
    ledger.give("two", but(1), schema(mean=0.3))
    with raises_fault(ClientError, "StatisticsOverlap"):
        ledger.give("three", TABLE, schema(mean=0.3))


def test_a_repeated_row_is_a_row_more(path: Path) -> None:
    ledger = ExactStatisticsRecord(path)
    ledger.give("one", TABLE, SCHEMA)
    twice = Table(np.vstack([TABLE.features, TABLE.features[:1]]), np.append(TABLE.labels, 0))
    with raises_fault(ClientError, "StatisticsOverlap") as caught:
        ledger.give("two", twice, SCHEMA)
    assert (caught.value.values["shared"], caught.value.values["differing"]) == (ROWS, 1)


def test_classes_are_counted_once(path: Path) -> None:
    """Two counts that differ by a corrected label tell from which class to which."""
    ledger = ExactStatisticsRecord(path)
    corrected = Table(TABLE.features, np.where(np.arange(ROWS) == 3, 1 - TABLE.labels, TABLE.labels))
    ledger.give("bare", TABLE, SCHEMA)
    ledger.give("counted", TABLE, SCHEMA, with_answers=True)
    ledger.give("again", TABLE, SCHEMA, with_answers=True)
    ledger.give("corrected, not counted", corrected, SCHEMA)
    written = path.read_bytes()
    with raises_fault(ClientError, "StatisticsOverlap", match="answers of some rows differ") as caught:
        ledger.give("corrected", corrected, SCHEMA, with_answers=True)
    assert caught.value.values["task"] == "counted"
    assert path.read_bytes() == written


def test_list_and_key_are_for_their_owner_alone_and_two_homes_lists_have_nothing_in_common(tmp_path: Path) -> None:
    homes = [tmp_path / name / "statistics.jsonl" for name in ("a", "b")]
    for path in homes:
        ExactStatisticsRecord(path).give("one", TABLE, SCHEMA)
        assert [one.stat().st_mode & 0o777 for one in (path, path.with_suffix(".key"))] == [0o600, 0o600]
    first, second = (set(path.read_text().split('"rows":')[1].split('"')[1::2]) for path in homes)
    assert len(first) == ROWS
    assert not first & second


def test_a_list_without_its_key_or_with_a_damaged_line_gives_nothing(path: Path) -> None:
    ledger, key = ExactStatisticsRecord(path), path.with_suffix(".key")
    ledger.give("one", TABLE, SCHEMA)
    kept = key.read_bytes()
    key.unlink()
    with raises_fault(ClientError, "StatisticsKeyLost", match="restore the key file"):
        ledger.give("two", TABLE, SCHEMA)
    key.write_bytes(b"0" * 63)
    key.chmod(0o600)
    with pytest.raises(KeystoreError, match="64 hexadecimal digits"):
        ledger.give("two", TABLE, SCHEMA)
    key.write_bytes(kept)
    path.write_bytes(b"{}\n" + path.read_bytes())
    with raises_fault(ClientError, "StatisticsLedgerInvalid", match="line 1"):
        ledger.give("two", TABLE, SCHEMA)


def test_what_a_crash_left_of_a_line_was_never_given(path: Path) -> None:
    ExactStatisticsRecord(path).give("one", but(20), SCHEMA)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    ExactStatisticsRecord(path).give("two", TABLE, SCHEMA)  # its sums never left
    with raises_fault(ClientError, "StatisticsOverlap", match="task two "):
        ExactStatisticsRecord(path).give("three", but(1), SCHEMA)


def test_of_processes_with_nearly_the_same_rows_one_gives_its_sums(path: Path) -> None:
    ExactStatisticsRecord(path).give("before", TABLE.chosen(np.arange(ROWS) < 1), SCHEMA)
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                ExactStatisticsRecord(path).give(str(number), TABLE.chosen(np.arange(ROWS) > number + 1), SCHEMA)
            except ClientError as error:
                os._exit(1 if error.name == "StatisticsOverlap" else 2)
            os._exit(0)
        children.append(child)
    refused = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(refused) == [0, 1, 1, 1]
    assert len(path.read_bytes().splitlines()) == 2
